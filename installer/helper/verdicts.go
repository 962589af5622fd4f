package helper

import (
	"context"
	"net/netip"

	"github.com/gominimal/minhost/installer/lease"
)

// verdicts returns what the table must hold. h.mu is held.
func (h *Helper) verdicts() []lease.Verdict {
	var all []lease.Verdict
	for _, b := range h.boxes {
		if b.enforced {
			all = append(all, h.verdictOf(b))
		}
	}
	return all
}

// enforce makes the verdict of a box live.
func (h *Helper) enforce(ctx context.Context, b *box) error {
	return h.verdict(ctx, b, true, h.cfg.Table.Put)
}

// refuse takes the verdict of a box away: its leaf is unknown then, so refused.
func (h *Helper) refuse(ctx context.Context, b *box) error {
	return h.verdict(ctx, b, false, h.cfg.Table.Refuse)
}

// release does that, and takes what connection tracking knows of the box.
func (h *Helper) release(ctx context.Context, b *box) error {
	return h.verdict(ctx, b, false, h.cfg.Table.Delete)
}

func (h *Helper) verdict(ctx context.Context, b *box, enforced bool, change func(context.Context, lease.Verdict) error) error {
	h.refilling.RLock()
	defer h.refilling.RUnlock()
	h.mu.Lock()
	b.enforced = enforced
	v := h.verdictOf(b)
	h.mu.Unlock()
	return change(ctx, v)
}

// name puts the name of a box into the zone, or takes it out.
func (h *Helper) name(b *box, named bool) error {
	h.mu.Lock()
	b.named = named
	h.mu.Unlock()
	return h.publish()
}

// publish writes the zone.
func (h *Helper) publish() error {
	h.publishing.Lock()
	defer h.publishing.Unlock()
	zone := map[string]netip.Addr{}
	h.mu.Lock()
	for name, b := range h.names {
		if b.named {
			zone[name] = b.Address
		}
	}
	h.mu.Unlock()
	return h.cfg.Names.Publish(zone)
}
