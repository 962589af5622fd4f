package helper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// killTime bounds the wait for killed processes to be gone.
const killTime = 5 * time.Second

// teardown ends an attached box.
func (h *Helper) teardown(ctx context.Context, c request, in api.TeardownIn) (api.TeardownOut, error) {
	h.mu.Lock()
	b, e := h.find(in.Lease)
	if b == nil {
		h.mu.Unlock()
		return sameEnd(c, e, in)
	}
	err := h.mayTeardown(c, b, in)
	if err != nil {
		h.mu.Unlock()
		return api.TeardownOut{}, err
	}
	mine := b.State == lease.Attached && in.Kill
	if mine {
		b.State = lease.Ending
	}
	h.mu.Unlock()
	if !in.Kill {
		var live int
		if mine, live, err = h.endEmpty(b); err != nil {
			return api.TeardownOut{}, internal("read leaf", err)
		}
		if live > 0 {
			return api.TeardownOut{}, &api.Busy{Lease: b.ID, Message: fmt.Sprintf("lease %s has %d live processes", b.ID, live),
				Next: "end them, or pass kill"}
		}
	}
	if !mine {
		return h.awaitEnd(ctx, c, b, in)
	}
	if err := h.finish(b, lease.OpTeardown); err != nil {
		return api.TeardownOut{}, internal("teardown", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return api.TeardownOut{Refusals: b.refused.list()}, nil
}

func (h *Helper) mayTeardown(c request, b *box, in api.TeardownIn) error {
	switch {
	case b.leaf == nil || b.UID != c.peer.UID && !c.root():
		return noSuchLease(in.Lease)
	case !b.Owns(in.Secret):
		return wrongSecret(c, b.ID)
	}
	return answer(lease.Ask(b.State, lease.OpTeardown), b.Lease, lease.OpTeardown)
}

// sameEnd repeats the result of the teardown that ended a lease.
func sameEnd(c request, e *ended, in api.TeardownIn) (api.TeardownOut, error) {
	if e == nil || e.op != lease.OpTeardown || e.lease.UID != c.peer.UID && !c.root() {
		return api.TeardownOut{}, noSuchLease(in.Lease)
	}
	if !e.lease.Owns(in.Secret) {
		return api.TeardownOut{}, wrongSecret(c, e.lease.ID)
	}
	return api.TeardownOut{Refusals: e.refusals}, nil
}

// awaitEnd waits for a teardown that somebody else began.
func (h *Helper) awaitEnd(ctx context.Context, c request, b *box, in api.TeardownIn) (api.TeardownOut, error) {
	select {
	case <-b.over:
	case <-ctx.Done():
		return api.TeardownOut{}, ctx.Err()
	case <-time.After(2 * killTime):
		return api.TeardownOut{}, &api.Busy{Lease: b.ID, Message: "lease " + b.ID + " is still ending", Next: "minhost status"}
	}
	h.mu.Lock()
	_, e := h.find(in.Lease)
	h.mu.Unlock()
	return sameEnd(c, e, in)
}

// finish takes everything of an ending box away and forgets it. When a part fails the box stays
// ending and finish is tried again until it succeeds: nothing that is left over is forgotten.
func (h *Helper) finish(b *box, op lease.Op) error {
	err := h.takeAway(b)
	if err == nil {
		h.bury(b, op)
		return nil
	}
	h.log.Error("ending", "lease", b.ID, "box", b.Name, "cause", err)
	h.spawn(func(ctx context.Context) {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(h.cfg.RetryAfter):
			}
			if err := h.takeAway(b); err != nil {
				h.log.Warn("ending again", "lease", b.ID, "cause", err)
				continue
			}
			h.bury(b, op)
			return
		}
	})
	return err
}

// bury tells the watchers, then forgets: who waits for over has the event already.
func (h *Helper) bury(b *box, op lease.Op) {
	h.tell(b, api.EventKindGone, "gone")
	h.mu.Lock()
	h.forget(b, op)
	h.mu.Unlock()
	b.members.close()
	h.rest()
	h.log.Info("ended", "lease", b.ID, "box", b.Name, "by", op)
}

// takeAway undoes an attach: name, verdict (from here on the leaf is unknown, so refused), processes,
// leaf, record. It may be called again behind a failure.
func (h *Helper) takeAway(b *box) error {
	if err := h.takeParts(b); err != nil {
		return err
	}
	// Before the address goes to somebody else. Not under b.changing: two that name each other may
	// end at once.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.life), 2*killTime)
	defer cancel()
	if err := h.relink(ctx, b); err != nil {
		return err
	}
	return errors.Join(h.leaveNet(b), b.leaf.Close())
}

func (h *Helper) takeParts(b *box) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	h.mu.Lock()
	if b.unwatch != nil {
		b.unwatch()
	}
	h.mu.Unlock()
	h.drain()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.life), 2*killTime)
	defer cancel()
	var errs []error
	if b.Name != "" {
		errs = append(errs, h.name(b, false))
	}
	if h.cfg.Table != nil {
		h.farewell(ctx, b)
		errs = append(errs, h.refuse(ctx, b))
	}
	h.look(b) // a leaf may be empty because its last process was moved out
	live := h.emptyLeaf(ctx, b)
	if live == nil {
		errs = append(errs, h.dropTaps(ctx, b), h.endSockets(ctx, b))
		h.drain()
	}
	if h.cfg.Table != nil {
		// Behind the end of the processes: what they sent until then made conntrack entries too.
		errs = append(errs, h.release(ctx, b))
	}
	if live != nil {
		return errors.Join(append(errs, live)...)
	}
	h.unsettle(b, b.leaf)
	if err := b.leaf.Remove(); err != nil {
		return errors.Join(append(errs, fmt.Errorf("remove leaf: %w", err))...)
	}
	if err := h.cfg.Store.Remove(b.ID); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// emptyLeaf kills what lives in the leaf and waits for it to be gone.
func (h *Helper) emptyLeaf(ctx context.Context, b *box) error {
	live, err := b.leaf.Populated()
	if err != nil || !live {
		return err
	}
	if err := b.leaf.Kill(); err != nil {
		return fmt.Errorf("kill leaf: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	if err := b.leaf.WaitEmpty(ctx); err != nil {
		return fmt.Errorf("wait for killed processes: %w", err)
	}
	return nil
}

func (h *Helper) drain() {
	if h.cfg.Refusals != nil {
		h.cfg.Refusals.Drain()
	}
}
