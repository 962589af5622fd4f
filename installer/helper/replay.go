package helper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"

	"github.com/gominimal/minhost/installer/lease"
)

// Replay takes up what a helper before this one left: a lease whose leaf has processes is kept
// with verdict, name and address; any other is ended. Then the table and the zone hold exactly
// what lives. To be called once, before Serve.
func (h *Helper) Replay(ctx context.Context) error {
	if released, err := h.cfg.Store.Rested(); err != nil {
		h.log.Error("released addresses", "cause", err)
	} else {
		h.mu.Lock()
		maps.Copy(h.released, released)
		h.mu.Unlock()
	}
	leases, broken := h.cfg.Store.All()
	for _, err := range broken {
		h.log.Error("lease record", "cause", err)
	}
	var dead []*box
	for _, l := range leases {
		b, live, err := h.revive(l)
		if err != nil {
			return err
		}
		if b != nil && !live {
			dead = append(dead, b)
		}
	}
	h.mu.Lock()
	want := h.verdicts()
	h.mu.Unlock()
	if h.cfg.Table != nil {
		if err := h.cfg.Table.Refill(ctx, want); err != nil {
			return fmt.Errorf("refill table: %w", err)
		}
	}
	if err := h.resettle(); err != nil {
		h.log.Error("homes of boxes", "cause", err)
	}
	h.republish()
	for _, b := range dead {
		h.finish(b, lease.OpTeardown)
	}
	h.sweep()
	h.inherited()
	h.spawn(h.endRules)
	return nil
}

// republish writes the zone, and tries again where that fails: on a full disk the names of boxes that are gone stay
// for as long, and nothing else of the helper needs to wait for it.
func (h *Helper) republish() {
	err := h.publish()
	if err == nil {
		return
	}
	h.log.Error("publish zone", "cause", err)
	h.spawn(func(ctx context.Context) {
		for err != nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(h.cfg.RetryAfter):
			}
			err = h.publish()
		}
		h.log.Info("zone published")
	})
}

// revive makes a box of a stored lease. live is false when its leaf is empty or gone.
func (h *Helper) revive(l lease.Lease) (b *box, live bool, err error) {
	leaf, err := h.cfg.Tree.Open(l.ID)
	if errors.Is(err, fs.ErrNotExist) {
		h.log.Info("leaf gone while the helper was away", "lease", l.ID, "box", l.Name)
		return nil, false, h.cfg.Store.Remove(l.ID)
	}
	if err != nil {
		return nil, false, fmt.Errorf("open leaf %s: %w", l.ID, err)
	}
	populated, err := leaf.Populated()
	if err != nil {
		leaf.Close()
		return nil, false, fmt.Errorf("read leaf %s: %w", l.ID, err)
	}
	live = populated && l.State != lease.Ending
	b = &box{Lease: l, leaf: leaf, over: make(chan struct{})}
	b.State = lease.Ending
	if live {
		b.State, b.enforced, b.named = lease.Attached, true, true
		h.overdue(b)
		b.uncut = b.Cutting // what it would end has lived on
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.boxes[b.ID], h.numbers[b.Number] = b, b
	if b.Name != "" {
		h.names[b.Name] = b
	}
	h.lastNum = max(h.lastNum, b.Number)
	h.counts.plans++
	h.counts.attaches++
	if live {
		h.log.Info("kept", "lease", b.ID, "box", b.Name, "address", text(b.Address))
		h.refind(b)
		h.watchLeaf(b)
		if b.EndWithConnection {
			h.orphan(b)
		}
	}
	return b, live, nil
}

// orphan ends a box whose connection was lost with the helper before, unless it is adopted in time.
// h.mu is held.
func (h *Helper) orphan(b *box) {
	h.spawn(func(ctx context.Context) {
		select {
		case <-ctx.Done():
			return
		case <-b.over:
			return
		case <-time.After(h.cfg.AdoptWithin):
		}
		h.mu.Lock()
		mine := b.owner == nil && b.State == lease.Attached
		if mine {
			b.State = lease.Ending
		}
		h.mu.Unlock()
		if mine {
			h.log.Info("not adopted", "lease", b.ID, "box", b.Name)
			h.finish(b, lease.OpTeardown)
		}
	})
}

// sweep removes leaves that no lease names: plans of the helper before. One that has processes
// stays (it is in no set, so it reaches nothing) and verify names it.
func (h *Helper) sweep() {
	names, err := h.cfg.Tree.List()
	if err != nil {
		h.log.Error("list leaves", "cause", err)
		return
	}
	for _, name := range names {
		h.mu.Lock()
		known := h.boxes[name] != nil
		h.mu.Unlock()
		if known || !lease.ValidID(name) {
			continue
		}
		leaf, err := h.cfg.Tree.Open(name)
		if err == nil {
			err = errors.Join(leaf.Remove(), leaf.Close())
		}
		if err != nil {
			h.log.Warn("leaf of no lease stays", "leaf", name, "cause", err)
		}
	}
}
