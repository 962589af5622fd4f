package helper

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// verdictOf is what the table must hold for a box now: rules by box follow the boxes of the same account
// that have a verdict themselves. h.mu is held.
func (h *Helper) verdictOf(b *box) lease.Verdict {
	v := b.Verdict(b.leaf.ID(), func(name string) (uint16, netip.Addr, bool) {
		o := h.live(b, name)
		if o == nil {
			return 0, netip.Addr{}, false
		}
		return o.Number, o.Address, true
	})
	v.Uncut = b.uncut && b.Cutting
	return v
}

// live finds the box that a policy of b means by a name: a stranger's never. h.mu is held.
func (h *Helper) live(b *box, name string) *box {
	o := h.names[name]
	if o == nil || !o.enforced || o.UID != b.UID {
		return nil
	}
	return o
}

// ordered runs a change of one box's verdict before or behind every other.
func (h *Helper) ordered(b *box, change func() error) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	return change()
}

// relink writes the verdicts anew of boxes whose policies name b, which came or went.
func (h *Helper) relink(ctx context.Context, b *box) error {
	if b.Name == "" || h.cfg.Table == nil {
		return nil
	}
	var others []*box
	h.mu.Lock()
	for _, o := range h.boxes {
		if o != b && o.enforced && o.UID == b.UID && o.Policy.NamesBox(b.Name) {
			others = append(others, o)
		}
	}
	h.mu.Unlock()
	var errs []error
	for _, o := range others {
		err := h.ordered(o, func() error {
			h.mu.Lock()
			live := o.enforced
			h.mu.Unlock()
			if !live {
				return nil
			}
			return h.enforce(ctx, o)
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("rules of box %s for box %s: %w", o.Name, b.Name, err))
		}
	}
	return errors.Join(errs...)
}

// relinkSoon links a box that came; a failure is tried again until it is gone: until then the others
// reach it less, not more.
func (h *Helper) relinkSoon(b *box) {
	err := h.relink(h.life, b)
	if err == nil {
		return
	}
	h.log.Error("link", "lease", b.ID, "box", b.Name, "cause", err)
	h.spawn(func(ctx context.Context) {
		for err != nil {
			select {
			case <-ctx.Done():
				return
			case <-b.over:
				return
			case <-time.After(h.cfg.RetryAfter):
			}
			err = h.relink(ctx, b)
		}
	})
}

// destination parses what Explain is asked about: "192.0.2.7:443", "192.0.2.7", "[2001:db8::1]:443",
// "box:api:3000", "box:api". absent is the answer when there is no such box. h.mu is held.
func (h *Helper) destination(b *box, s string) (to netip.AddrPort, absent string, err error) {
	rest, ok := strings.CutPrefix(s, "box:")
	if !ok {
		to, err = addressOf(s)
		return to, "", err
	}
	name, port, hasPort := strings.Cut(rest, ":")
	if name, err = lease.ParseName(name); err != nil {
		return to, "", err
	}
	at := "127.0.0.1"
	if hasPort {
		at += ":" + port
	}
	if to, err = addressOf(at); err != nil {
		return to, "", fmt.Errorf("%q is neither box:NAME nor box:NAME:PORT", api.Text(s))
	}
	o := h.live(b, name)
	switch {
	case o == nil && b.Policy.NamesBox(name):
		return to, fmt.Sprintf("a rule names box %s, which does not live now", name), nil
	case o == nil:
		return to, fmt.Sprintf("no box %s of this account lives now", name), nil
	}
	return netip.AddrPortFrom(o.Address, to.Port()), "", nil
}
