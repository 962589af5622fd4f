package helper

import (
	"context"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// endAhead is how much before its end a rule is taken out of the verdict. From its end on the kernel itself
// refuses the next packet, and answers the box alone: the peers of flows are told only by a cut that comes
// before.
const endAhead = 100 * time.Millisecond

// longestNap bounds the wait for the next end. Ends are of the wall clock, which may be set, and does not stop
// when the machine sleeps as timers do.
const longestNap = 5 * time.Second

// expiry is what the one goroutine that ends rules has.
type expiry struct {
	wake chan struct{}
	// owed are rules, by lease, that are out of the verdict and whose flows could not be cut yet.
	owed map[string][]lease.Rule
}

func newExpiry() expiry {
	return expiry{wake: make(chan struct{}, 1), owed: map[string][]lease.Rule{}}
}

// expects notes that a policy with an end may be new.
func (h *Helper) expects(p lease.Policy) {
	if p.NextEnd().IsZero() {
		return
	}
	select {
	case h.expiry.wake <- struct{}{}:
	default:
	}
}

// endRules ends rules at their time, until the context ends.
func (h *Helper) endRules(ctx context.Context) {
	for {
		nap, failed := h.endDue(ctx)
		if failed {
			nap = h.cfg.RetryAfter
		}
		var again <-chan time.Time // nothing to wait for: until a policy comes
		if nap > 0 {
			again = time.After(nap)
		}
		select {
		case <-ctx.Done():
			return
		case <-h.expiry.wake:
		case <-again:
		}
	}
}

// endDue ends what is due, and says how long to wait for the next, 0 for ever. A box that is being attached
// is looked at again: the kernel ends its rules meanwhile. One that is planned has them taken at the attach.
func (h *Helper) endDue(ctx context.Context) (nap time.Duration, failed bool) {
	now := h.cfg.Now()
	var due []*box
	h.mu.Lock()
	for id := range h.expiry.owed {
		if b := h.boxes[id]; b != nil {
			due = append(due, b)
		} else {
			delete(h.expiry.owed, id)
		}
	}
	for _, b := range h.boxes {
		end := b.Policy.NextEnd()
		if end.IsZero() || h.expiry.owed[b.ID] != nil || b.State != lease.Attached && b.State != lease.Attaching {
			continue
		}
		left := end.Add(-endAhead).Sub(now)
		switch {
		case left <= 0 && b.State == lease.Attached:
			due = append(due, b)
			continue
		case left <= 0:
			left = h.cfg.RetryAfter
		}
		if left = min(left, longestNap); nap == 0 || left < nap {
			nap = left
		}
	}
	h.mu.Unlock()
	for _, b := range due {
		if err := h.expire(ctx, b); err != nil {
			h.log.Error("end rules", "lease", b.ID, "box", b.Name, "cause", err)
			failed = true
		}
	}
	if len(due) > 0 && !failed {
		return h.endDue(ctx) // the next ones of these
	}
	return nap, failed
}

// expire puts the verdict without the rules that have ended live, and cuts what only they admitted. Behind a
// failure it does again what is not done.
func (h *Helper) expire(ctx context.Context, b *box) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	h.mu.Lock()
	old, live := b.Lease, b.State == lease.Attached
	left, ended := old.Policy.At(h.cfg.Now().Add(endAhead))
	h.mu.Unlock()
	if !live {
		delete(h.expiry.owed, b.ID)
		return nil
	}
	if len(ended) > 0 {
		if err := h.change(ctx, b, left); err != nil {
			h.mu.Lock()
			b.keep(old.Policy)
			b.Generation, b.Cutting = old.Generation, old.Cutting
			h.mu.Unlock()
			return err
		}
		h.expiry.owed[b.ID] = append(h.expiry.owed[b.ID], ended...)
	}
	return h.endOwed(b)
}

// endOwed cuts the flows of rules that are out of the verdict, unless an update did meanwhile. b.changing is held.
func (h *Helper) endOwed(b *box) error {
	ended := h.expiry.owed[b.ID]
	h.mu.Lock()
	cutting := b.Cutting
	h.mu.Unlock()
	n := 0
	if cutting {
		var err error
		if n, err = h.cut(b); err != nil {
			return err
		}
	}
	delete(h.expiry.owed, b.ID)
	if len(ended) > 0 {
		h.log.Info("rules ended", "lease", b.ID, "box", b.Name, "rules", len(ended), "cut", n)
	}
	for _, r := range ended {
		h.tell(b, api.EventKindExpired, hasEnded(r))
	}
	return nil
}

func hasEnded(r lease.Rule) string { return "the rule " + r.String() + " has ended" }

// overdue takes rules out of a stored policy that ended while no helper lived, which who watches next is told. Their
// flows are cut as those of any policy that is new.
func (h *Helper) overdue(b *box) {
	left, ended := b.Policy.At(h.cfg.Now().Add(endAhead))
	if len(ended) == 0 {
		return
	}
	var names []string
	for _, r := range ended {
		names = append(names, r.String())
		h.events.miss(b.UID, api.Event{Kind: api.EventKindExpired, Time: stamp(r.Until), Lease: b.ID, Box: b.Name, Text: hasEnded(r)})
	}
	b.renew(left)
	b.Cutting = h.cfg.Table != nil
	h.log.Info("rules ended while the helper was away", "lease", b.ID, "box", b.Name, "rules", strings.Join(names, ", "))
}
