package helper

import (
	"context"
	"errors"
	"fmt"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// update changes what a call names of an attached box.
func (h *Helper) update(ctx context.Context, c request, in api.UpdateIn) (api.UpdateOut, error) {
	if in.Policy == nil && in.Boundary == "" {
		return api.UpdateOut{}, invalid("policy", errors.New("there is nothing to update: neither a policy nor a boundary"))
	}
	b, err := h.use(c, in.Lease, in.Secret)
	if err == nil {
		err = h.mayDeclare(b, in.Boundary)
	}
	if err == nil && in.Policy != nil {
		err = h.replace(ctx, b, *in.Policy)
	}
	if err == nil && in.Boundary != "" {
		err = h.declare(b, in.Boundary)
	}
	return api.UpdateOut{}, err
}

// replace gives a box another policy: record first, then table.
func (h *Helper) replace(ctx context.Context, b *box, in api.Policy) error {
	p, err := policyFrom(in, h.cfg.Now())
	if err != nil {
		return err
	}
	if h.cfg.Table == nil && p.Confined() && !b.Unenforced {
		return &api.Unenforceable{Message: "this host cannot confine a box: " + h.cfg.Unenforceable, Next: "minhost verify"}
	}
	b.changing.Lock() // no verdict may be written behind the one that Teardown takes away
	defer b.changing.Unlock()
	h.mu.Lock()
	old := b.Policy
	err = h.afford(b.UID, p, b)
	if err == nil {
		err = answer(lease.Ask(b.State, lease.OpUse), b.Lease, lease.OpUse)
	}
	h.mu.Unlock()
	if err != nil {
		return err
	}
	if err := h.change(ctx, b, p); err != nil {
		back := h.change(context.WithoutCancel(ctx), b, old)
		_, cerr := h.cut(b)
		return errors.Join(internal("update", err), back, cerr)
	}
	// The policy counts from here on, whatever becomes of older flows: it is not taken back.
	ended, err := h.cut(b)
	if err != nil {
		return internal("the new policy is live, but older flows could not be ended: until they are, those to the box and over loopback are refused, new ones too", err)
	}
	h.log.Info("updated", "lease", b.ID, "box", b.Name, "egress", p.Egress, "rules", len(p.Rules), "ended", ended)
	h.tell(b, api.EventKindUpdated, "policy updated")
	return nil
}

// change records a policy and makes it live; unless it admits all that the one before did, flows are to be
// cut then. The record goes first: a helper that dies in between must not come back with the policy that was to be
// tightened.
func (h *Helper) change(ctx context.Context, b *box, p lease.Policy) error {
	h.mu.Lock()
	if !b.Cutting && p.Covers(b.Policy) {
		b.keep(p)
	} else {
		b.renew(p)
		b.Cutting = h.cfg.Table != nil // a repair that runs now refills with it
	}
	h.mu.Unlock()
	if err := h.record(b); err != nil {
		return fmt.Errorf("record lease: %w", err)
	}
	if err := h.settle(b); err != nil {
		return err
	}
	if h.cfg.Table == nil {
		return nil
	}
	return h.enforce(ctx, b)
}
