package helper

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// plan reserves: number, name and address in memory, then the leaf, then the address with the kernel. A failed plan
// reserved nothing.
func (h *Helper) plan(ctx context.Context, c request, in api.PlanIn) (api.PlanOut, error) {
	want, err := h.wanted(c, in)
	if err != nil {
		return api.PlanOut{}, err
	}
	if err := h.rangeReady(want.Name != ""); err != nil {
		return api.PlanOut{}, err
	}
	secret, hash := lease.NewSecret()
	want.SecretHash = hash
	b, err := h.reserve(c, want)
	if err != nil {
		return api.PlanOut{}, err
	}
	if err := h.build(ctx, b); err != nil {
		return api.PlanOut{}, err
	}
	h.mu.Lock()
	l := b.Lease // another connection may change it from here on
	h.mu.Unlock()
	h.log.Info("planned", "lease", l.ID, "box", l.Name, "address", text(l.Address), "uid", l.UID, "mode", l.Mode, "egress", l.Policy.Egress)
	out := api.PlanOut{
		Lease: l.ID, Secret: secret, Name: l.Name, Address: text(l.Address),
		HostAddress: lease.HostAddress().String(), Leaf: b.leaf.Path(), Net: netPlanOf(l),
		Enforcement: h.enforcement(), EnforcementCause: h.cfg.Unenforceable, Boundary: boundaryTo(l),
		Localhost: localhostTo(l), LocalhostCause: h.localhostCause(in, l),
	}
	return out, nil
}

// build makes of a reservation what a plan is on the host. It gives the box its leaf last: nobody finds it before.
func (h *Helper) build(ctx context.Context, b *box) error {
	leaf, err := h.cfg.Tree.Create(b.ID)
	if err != nil {
		h.unreserve(b, nil)
		return internal("create leaf", err)
	}
	h.expectMove()
	err = h.house(b)
	if err == nil {
		if err = h.settleIn(b, leaf); err != nil {
			err = internal("own localhost", err)
		}
	}
	if err != nil {
		h.unreserve(b, leaf)
		h.removeLeaf(b.ID, leaf)
		return err
	}
	h.mu.Lock()
	b.leaf = leaf
	h.counts.plans++
	lost := ctx.Err() != nil
	if lost {
		b.State = lease.Ending
	}
	h.mu.Unlock()
	if lost {
		h.drop(b)
		return context.Cause(ctx)
	}
	return nil
}

// wanted checks the parameters, and what the host can do with them.
func (h *Helper) wanted(c request, in api.PlanIn) (lease.Lease, error) {
	l := lease.Lease{UID: c.peer.UID, State: lease.Planned, EndWithConnection: in.EndWithConnection, Attempt: in.Attempt, Strict: in.Boundary == api.BoundaryStrict, Since: h.cfg.Now().UTC()}
	if err := modeOf(in, &l); err != nil {
		return lease.Lease{}, err
	}
	if err := h.localhostOf(in, &l); err != nil {
		return lease.Lease{}, err
	}
	if err := checkAttempt(in.Attempt); err != nil {
		return lease.Lease{}, err
	}
	if isolated(l.Mode) && h.cfg.Isolation == nil {
		return lease.Lease{}, &api.NotSupported{Message: fmt.Sprintf("mode %s: this helper cannot tell network namespaces apart", in.Mode), Next: "use mode host"}
	}
	var err error
	if in.Name != "" {
		if l.Name, err = lease.ParseName(in.Name); err != nil {
			return lease.Lease{}, invalid("name", err)
		}
	}
	if l.Policy, err = policyFrom(in.Policy, h.cfg.Now()); err != nil {
		return lease.Lease{}, err
	}
	if h.cfg.Table == nil && (l.Policy.Confined() || len(l.Policy.DenySubnets) > 0) {
		if !in.AllowUnenforced {
			return lease.Lease{}, &api.Unenforceable{
				Message: "this host cannot confine a box: " + h.cfg.Unenforceable, Next: "minhost verify; or pass allow_unenforced and run it open"}
		}
		l.Unenforced = true
	}
	return l, nil
}

// reserve takes id, number, name and address under the lock.
func (h *Helper) reserve(c request, l lease.Lease) (*box, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	leaves, addresses := 0, 0
	for _, b := range h.boxes {
		if b.UID == l.UID {
			leaves++
			if lease.InRange(b.Address) {
				addresses++
			}
		}
	}
	if err := quota(l, leaves, addresses); err != nil {
		return nil, err
	}
	if l.Name != "" && h.names[l.Name] != nil {
		return nil, &api.NameTaken{Name: l.Name, Message: fmt.Sprintf("a box named %s exists", l.Name),
			Next: "minhost ls; choose another name or end that box"}
	}
	if err := h.attemptTaken(l.UID, l.Attempt); err != nil {
		return nil, err
	}
	if err := h.afford(l.UID, l.Policy, nil); err != nil {
		return nil, err
	}
	l.ID = lease.NewID()
	b := &box{Lease: l, owner: c.conn, over: make(chan struct{})}
	if err := h.assign(b, nil); err != nil {
		return nil, err
	}
	h.boxes[b.ID] = b
	if b.Name != "" {
		h.names[b.Name] = b
	}
	return b, nil
}

// quota is what one account may hold; root is not counted.
func quota(l lease.Lease, leaves, addresses int) error {
	switch {
	case l.UID == 0:
		return nil
	case leaves >= maxLeaves:
		return &api.QuotaExceeded{Limit: maxLeaves, Message: fmt.Sprintf("uid %d holds %d leaves already", l.UID, leaves), Next: nextLs}
	case l.Name != "" && addresses >= maxAddresses:
		return &api.QuotaExceeded{Limit: maxAddresses, Message: fmt.Sprintf("uid %d holds %d addresses already", l.UID, addresses), Next: nextLs}
	}
	return nil
}

// unreserve takes back a reservation that never became a plan; its leaf may be nil.
func (h *Helper) unreserve(b *box, leaf Leaf) {
	h.unsettle(b, leaf)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.boxes, b.ID)
	delete(h.numbers, b.Number)
	if b.Name != "" {
		delete(h.names, b.Name)
	}
	close(b.over)
}

func (h *Helper) enforcement() api.Enforcement {
	if h.cfg.Table == nil {
		return api.EnforcementNone
	}
	return api.EnforcementPerBox
}

func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
