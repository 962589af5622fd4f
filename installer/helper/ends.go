package helper

import (
	"context"
	"time"

	"github.com/gominimal/minhost/installer/lease"
)

// closed is called once for each connection, behind its last call: plans end with it, and boxes
// that were asked to.
func (h *Helper) closed(c *conn) {
	var plans, boxes []*box
	h.mu.Lock()
	for _, b := range h.boxes {
		if b.owner != c {
			continue
		}
		b.owner = nil
		switch {
		case b.State == lease.Planned:
			b.State = lease.Ending
			plans = append(plans, b)
		case b.State == lease.Attached && b.EndWithConnection:
			b.State = lease.Ending
			boxes = append(boxes, b)
		}
	}
	h.mu.Unlock()
	for _, b := range plans {
		h.drop(b)
	}
	for _, b := range boxes {
		h.log.Info("connection closed", "lease", b.ID, "box", b.Name)
		h.finish(b, lease.OpTeardown)
	}
}

// watchLeaf ends a box whose leaf has no process any more. h.mu is held.
func (h *Helper) watchLeaf(b *box) {
	ctx, cancel := context.WithCancel(h.life)
	b.unwatch = cancel
	h.spawn(func(context.Context) {
		defer cancel()
		for b.leaf.WaitEmpty(ctx) == nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(h.cfg.Grace):
			}
			live, err := b.leaf.Populated()
			if err != nil || live {
				continue
			}
			h.mu.Lock()
			mine := b.State == lease.Attached
			if mine {
				b.State = lease.Ending
			}
			h.mu.Unlock()
			if mine {
				h.finish(b, lease.OpTeardown)
			}
			return
		}
	})
}
