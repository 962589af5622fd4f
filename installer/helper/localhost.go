package helper

import (
	"fmt"
	"net/netip"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// Localhost is the programs that give boxes a localhost of their own (linux/localhost).
type Localhost interface {
	// Put makes them know a home, in the place of an older one of the same leaf.
	Put(lease.Home) error
	// Delete makes them forget it. No error when they do not know it.
	Delete(lease.Home) error
	// Sync makes them know exactly these.
	Sync([]lease.Home) error
}

// localhostOf decides whose localhost a planned box has.
func (h *Helper) localhostOf(in api.PlanIn, l *lease.Lease) error {
	if l.Mode != lease.ModeHost {
		if in.Localhost != "" {
			return invalid("localhost", fmt.Errorf("localhost %s contradicts mode %s, which has its own network", in.Localhost, in.Mode))
		}
		return nil
	}
	l.OwnLocalhost = h.cfg.Localhost != nil && in.Localhost != api.LocalhostShared
	return nil
}

// dialled is where a destination of a box leads: the host as boxes see it is the host's localhost, and judged so.
func (h *Helper) dialled(l lease.Lease, to netip.AddrPort) netip.AddrPort {
	if h.cfg.Localhost == nil || l.Mode != lease.ModeHost || to.Addr() != lease.HostAddress() {
		return to
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), to.Port())
}

// localhostTo is what List and Plan say of it.
func localhostTo(l lease.Lease) api.Localhost {
	switch {
	case l.Mode != lease.ModeHost:
		return ""
	case l.OwnLocalhost:
		return api.LocalhostOwn
	}
	return api.LocalhostShared
}

// localhostCause says why a box has not the localhost that was wanted.
func (h *Helper) localhostCause(in api.PlanIn, l lease.Lease) string {
	if l.Mode != lease.ModeHost || l.OwnLocalhost || in.Localhost == api.LocalhostShared {
		return ""
	}
	if h.cfg.Localhost == nil {
		return h.cfg.SharedLocalhost
	}
	return "no address of 127.65.0.0/16 is free for it"
}

// settle makes the programs know the home of a box, after each change of its policy.
func (h *Helper) settle(b *box) error { return h.settleIn(b, b.leaf) }

// settleIn is settle for a box that Plan makes, which has its leaf later.
func (h *Helper) settleIn(b *box, leaf Leaf) error {
	if h.cfg.Localhost == nil {
		return nil
	}
	h.mu.Lock()
	home, ok := b.Home(leaf.ID())
	h.mu.Unlock()
	if !ok {
		return nil
	}
	return h.cfg.Localhost.Put(home)
}

// unsettle makes them forget it, and ends the guard of its address. A failure leaves both until the next
// helper: nobody has that leaf again, and the address stays guarded.
func (h *Helper) unsettle(b *box, leaf Leaf) {
	if h.cfg.Localhost == nil {
		return
	}
	var id uint64 // there is a guard before there is a leaf
	if leaf != nil {
		id = leaf.ID()
	}
	h.mu.Lock()
	home, ok := b.Home(id)
	h.mu.Unlock()
	if ok {
		if err := h.cfg.Localhost.Delete(home); err != nil {
			h.log.Error("home stays", "lease", b.ID, "cause", err)
		}
	}
}

// resettle makes the programs know exactly the boxes of now.
func (h *Helper) resettle() error {
	if h.cfg.Localhost == nil {
		return nil
	}
	var all []lease.Home
	h.mu.Lock()
	for _, b := range h.boxes {
		if b.leaf == nil {
			continue
		}
		if home, ok := b.Home(b.leaf.ID()); ok {
			all = append(all, home)
		}
	}
	h.mu.Unlock()
	return h.cfg.Localhost.Sync(all)
}
