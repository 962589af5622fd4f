package helper

import (
	"context"
	"fmt"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// use finds an attached box for a call that shows its secret.
func (h *Helper) use(c request, id, secret string) (*box, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.used(c, id, secret)
}

// used is use with h.mu held.
func (h *Helper) used(c request, id, secret string) (*box, error) {
	b, e := h.find(id)
	switch {
	case b == nil && e != nil && e.lease.UID == c.peer.UID:
		return nil, &api.NoSuchLease{Lease: id, Message: fmt.Sprintf("lease %s has ended", id), Next: "minhost ls"}
	case b == nil || b.leaf == nil || b.UID != c.peer.UID && !c.root():
		return nil, noSuchLease(id)
	case !b.Owns(secret):
		return nil, wrongSecret(c, id)
	}
	return b, answer(lease.Ask(b.State, lease.OpUse), b.Lease, lease.OpUse)
}

func wrongSecret(c request, id string) error {
	return &api.WrongSecret{Lease: id, Message: c.method + ": the secret is not that of lease " + id, Next: "use the secret that Plan returned"}
}

// join puts a further process into the leaf of an attached box. The verdict is that of the leaf.
func (h *Helper) join(ctx context.Context, c request, in api.JoinIn) (api.JoinOut, error) {
	b, err := h.use(c, in.Lease, in.Secret)
	if err != nil {
		return api.JoinOut{}, err
	}
	if h.cfg.OneProcess {
		return api.JoinOut{}, oneProcess(b.ID)
	}
	h.mu.Lock()
	netns := b.netns
	h.mu.Unlock()
	if isolated(b.Mode) && netns == nil {
		return api.JoinOut{}, &api.WrongState{Lease: b.ID, State: string(lease.Attached),
			Message: fmt.Sprintf("the network namespace of lease %s is gone: no process of the box is in it", b.ID), Next: "end that lease, and plan again"}
	}
	p, err := h.process(c, in.PID)
	if err != nil {
		return api.JoinOut{}, err
	}
	defer p.Close()
	if err := h.fit(c, p); err != nil {
		return api.JoinOut{}, err
	}
	if err := h.declare(b, in.Boundary); err != nil {
		return api.JoinOut{}, err
	}
	if err := h.enter(ctx, b, p); err != nil {
		return api.JoinOut{}, err
	}
	net, err := h.giveNet(c, b)
	if err != nil {
		return api.JoinOut{}, err
	}
	h.log.Info("joined", "box", b.Name, "kind", in.Kind, "name", api.Text(in.Name), "leaf", b.leaf.Path(), "pid", p.PID())
	h.tell(b, api.EventKindJoined, fmt.Sprintf("%s %s joined", in.Kind, api.Text(in.Name)))
	return api.JoinOut{Net: net}, nil
}

// enter moves a process into the leaf of a box that lives. That may end while the process moves: then cgroup.kill came
// before it, and it must not run on in a leaf without a lease.
func (h *Helper) enter(ctx context.Context, b *box, p Process) error {
	b.moving.RLock()
	defer b.moving.RUnlock()
	if err := h.usable(b); err != nil {
		return err
	}
	if err := h.move(ctx, b, p); err != nil {
		return err
	}
	if h.usable(b) != nil {
		b.leaf.Kill()
		return &api.NoSuchLease{Lease: b.ID, Message: fmt.Sprintf("lease %s ended while process %d joined it", b.ID, p.PID()), Next: nextLs}
	}
	return nil
}

// usable says whether a box that was found before is still one to use.
func (h *Helper) usable(b *box) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return answer(lease.Ask(b.State, lease.OpUse), b.Lease, lease.OpUse)
}

// adopt makes this connection the owner.
func (h *Helper) adopt(_ context.Context, c request, in api.AdoptIn) (api.AdoptOut, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, err := h.used(c, in.Lease, in.Secret)
	if err != nil {
		return api.AdoptOut{}, err
	}
	b.owner = c.conn
	h.log.Info("adopted", "lease", b.ID, "box", b.Name)
	return api.AdoptOut{}, nil
}
