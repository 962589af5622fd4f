package helper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gominimal/minhost/installer/lease"
)

// cutTime bounds what ends live flows. It takes some milliseconds. What failed is tried again later and later, up to
// cutPause.
const (
	cutTime  = 5 * time.Second
	cutPause = time.Minute
)

// cut ends the live flows of a box whose verdict is new: the table holds it with Cutting set, so that
// nothing that ends can begin again. Afterwards the verdict is an ordinary one. It is not stopped by the
// end of the caller's connection. b.changing is held.
func (h *Helper) cut(b *box) (int, error) {
	h.mu.Lock()
	due := b.Cutting
	h.mu.Unlock()
	if !due || h.cfg.Table == nil {
		return 0, nil
	}
	n, err := h.endFlows(b)
	ctx, cancel := h.whateverCalls()
	defer cancel()
	tried := b.still(h, err != nil)
	if left := h.enforce(ctx, b); left != nil {
		b.still(h, true) // it is the table that still has the verdict from before
		err = errors.Join(err, left)
	}
	if err == nil {
		return n, h.record(b)
	}
	if !tried {
		h.spawn(func(ctx context.Context) { h.recut(ctx, b, h.cfg.RetryAfter) })
	}
	return n, err
}

// still says whether flows of an older policy are left, in the record too: the next helper ends them otherwise. It
// tells whether some were left before.
func (b *box) still(h *Helper, left bool) (before bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before = b.uncut
	b.uncut, b.Cutting = left, left
	return before
}

// whateverCalls bounds what the end of a call does not stop.
func (h *Helper) whateverCalls() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(h.life), cutTime)
}

// keep gives a box another policy, under which what lives, lives on. h.mu is held.
func (b *box) keep(p lease.Policy) { b.Policy, b.needs = p, nil }

// renew gives a box another policy, under which all is judged anew. h.mu is held.
func (b *box) renew(p lease.Policy) {
	b.keep(p)
	b.Generation ^= 1
}

func (h *Helper) endFlows(b *box) (int, error) {
	ctx, cancel := h.whateverCalls()
	defer cancel()
	groups, err := b.leaf.IDs()
	if err != nil {
		return 0, err
	}
	h.mu.Lock()
	v := h.verdictOf(b)
	h.mu.Unlock()
	return h.cfg.Flows.Cut(ctx, v, groups, h.place(b), h.owners())
}

// farewell ends all flows of a box that ends, while the table still lets their ends be told. A failure
// costs the peers that: the box reaches nothing either way. Most boxes that end have no connected socket
// left, which is found out in a tenth of the time that a listing of connection tracking takes.
func (h *Helper) farewell(ctx context.Context, b *box) {
	groups, err := b.leaf.IDs()
	if err == nil {
		if some, err := h.cfg.Flows.Connected(ctx, groups); err == nil && !some {
			return
		}
	}
	h.mu.Lock()
	live := b.enforced
	b.renew(lease.Policy{Egress: lease.Deny, Ingress: lease.FromNone})
	b.Cutting = true
	h.mu.Unlock()
	if !live {
		return
	}
	err = h.enforce(ctx, b)
	if err == nil {
		_, err = h.endFlows(b)
	}
	if err != nil {
		h.log.Warn("peers are not told", "lease", b.ID, "box", b.Name, "cause", err)
	}
}

// endSockets ends what sockets of an empty leaf are held by others: those of Listen, and passed ones. Who
// waits for a peer there waits no longer.
func (h *Helper) endSockets(ctx context.Context, b *box) error {
	if h.cfg.Flows == nil {
		return nil
	}
	groups, err := b.leaf.IDs()
	if err != nil {
		return fmt.Errorf("sockets of others: %w", err)
	}
	n, err := h.cfg.Flows.End(ctx, groups)
	if n > 0 {
		h.log.Info("sockets that others held were ended", "lease", b.ID, "box", b.Name, "sockets", n)
	}
	return err
}

// inherited ends what a helper before this one had no time to end.
func (h *Helper) inherited() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.boxes {
		if b.Cutting && b.enforced {
			h.spawn(func(ctx context.Context) { h.recut(ctx, b, 0) })
		}
	}
}

// recut ends flows of an older policy, however often it takes, unless the box ends before.
func (h *Helper) recut(ctx context.Context, b *box, wait time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.over:
			return
		case <-time.After(wait):
		}
		n, live, err := h.cutLive(b)
		if !live {
			return
		}
		h.log.Info("ended flows of an older policy", "lease", b.ID, "box", b.Name, "ended", n, "cause", err)
		if err == nil {
			return
		}
		wait = min(max(2*wait, h.cfg.RetryAfter), cutPause)
	}
}

// cutLive cuts unless the box ends: no verdict may be written behind the one that its end takes away.
func (h *Helper) cutLive(b *box) (n int, live bool, err error) {
	b.changing.Lock()
	defer b.changing.Unlock()
	h.mu.Lock()
	live = b.State == lease.Attached
	h.mu.Unlock()
	if live {
		n, err = h.cut(b)
	}
	return n, live, err
}

// place is what the table knows of this host besides the policy of a box.
func (h *Helper) place(b *box) lease.Place {
	return lease.Place{Own: b.Address, Answerer: isAnswerer, Local: h.cfg.Local}
}

// owners tells the lease number of the box that a cgroup is in. The leaves are listed at the first
// question, which only flows between boxes and this host ask.
func (h *Helper) owners() func(uint64) uint16 {
	var numbers map[uint64]uint16
	return func(cgroup uint64) uint16 {
		if numbers != nil {
			return numbers[cgroup]
		}
		numbers = map[uint64]uint16{}
		h.mu.Lock()
		leaves := map[Leaf]uint16{}
		for _, b := range h.boxes {
			if b.leaf != nil {
				leaves[b.leaf] = b.Number
			}
		}
		h.mu.Unlock()
		for leaf, n := range leaves {
			ids, _ := leaf.IDs() // one that is gone has no flows
			for _, id := range ids {
				numbers[id] = n
			}
		}
		return numbers[cgroup]
	}
}
