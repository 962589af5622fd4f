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
		for wait := h.cfg.Grace; ctx.Err() == nil; {
			err := b.leaf.WaitEmpty(ctx)
			if err != nil && ctx.Err() == nil {
				h.log.Warn("a leaf cannot be watched now; looked at again soon", "lease", b.ID, "box", b.Name, "cause", err)
				wait = max(wait, h.cfg.RetryAfter) // out of descriptors or memory, most likely
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			mine, live, err := h.endEmpty(b)
			if err != nil || live > 0 {
				continue
			}
			if mine {
				h.finish(b, lease.OpTeardown)
			}
			return
		}
	})
}

// endEmpty makes an attached box an ending one if its leaf has no process; mine says that it did. Until it has looked, the
// box is what it was, for everybody; and no process joins between the look and the end. Of a box that ends already none
// is live: whoever asks has its end to wait for.
func (h *Helper) endEmpty(b *box) (mine bool, live int, err error) {
	b.moving.Lock()
	defer b.moving.Unlock()
	h.mu.Lock()
	attached := b.State == lease.Attached
	h.mu.Unlock()
	if !attached {
		return false, 0, nil
	}
	pids, err := b.leaf.Pids()
	if err != nil || len(pids) > 0 {
		return false, len(pids), err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if mine = b.State == lease.Attached; mine {
		b.State = lease.Ending
	}
	return mine, 0, nil
}
