package helper

import (
	"context"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// abandon gives a plan back.
func (h *Helper) abandon(_ context.Context, c request, in api.AbandonIn) (api.AbandonOut, error) {
	h.mu.Lock()
	b, e := h.find(in.Lease)
	err := h.mayAbandon(c, b, e, in.Lease)
	if b == nil || err != nil || b.State == lease.Ending {
		h.mu.Unlock()
		return api.AbandonOut{}, err
	}
	b.State = lease.Ending
	h.mu.Unlock()
	h.drop(b)
	return api.AbandonOut{}, nil
}

// mayAbandon: the connection that planned, or root; repeated, the account that planned.
func (h *Helper) mayAbandon(c request, b *box, e *ended, id string) error {
	if b == nil {
		if e != nil && (e.lease.UID == c.peer.UID || c.root()) && e.op == lease.OpAbandon {
			return nil
		}
		return noSuchLease(id)
	}
	if b.UID != c.peer.UID && !c.root() || b.leaf == nil {
		return noSuchLease(id)
	}
	if b.State == lease.Planned && b.owner != c.conn && !c.root() {
		return refuse(c.method, "only the connection that planned a lease can abandon it", "close that connection")
	}
	return answer(lease.Ask(b.State, lease.OpAbandon), b.Lease, lease.OpAbandon)
}

// drop ends a planned box.
func (h *Helper) drop(b *box) {
	h.unsettle(b, b.leaf)
	h.removeLeaf(b.ID, b.leaf)
	h.mu.Lock()
	h.forget(b, lease.OpAbandon)
	h.mu.Unlock()
	h.rest()
	h.log.Info("abandoned", "lease", b.ID, "box", b.Name)
}

// removeLeaf removes the leaf of a box that was never attached. It has no process; one that cannot be removed (somebody
// with root moved a process in: EBUSY) is tried again until it can.
func (h *Helper) removeLeaf(id string, l Leaf) {
	if err := l.Remove(); err != nil {
		h.log.Warn("leaf stays", "lease", id, "cause", err)
		h.spawn(func(ctx context.Context) { h.removeLater(ctx, l) })
		return
	}
	l.Close()
}

// removeLater tries until the leaf is gone or the helper ends; then the sweep of the next one does.
func (h *Helper) removeLater(ctx context.Context, l Leaf) {
	defer l.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(h.cfg.RetryAfter):
		}
		if l.Remove() == nil {
			return
		}
	}
}
