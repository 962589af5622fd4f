package helper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// Reasons of ProcessRefused that have to do with the namespace.
const (
	reasonHostNet   = "host_network"
	reasonSharedNet = "shared_network"
)

// isolate takes the namespace of the target of an Attach as that of the box. It must be proven to be the
// box's alone: not the host's, not another box's, without a process that is not the target.
func (h *Helper) isolate(b *box, p Process) error {
	n, err := h.namespaceOf(p)
	if err != nil {
		return err
	}
	if err := h.alone(n, p); err != nil {
		n.Close()
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if other := h.inNet(n.ID()); other != nil {
		n.Close()
		return unfitFor(p, &Unfit{reasonSharedNet, "its network namespace is that of lease " + other.ID})
	}
	b.netns, b.NetNS = n, n.ID()
	return nil
}

// inNet finds the box that has a namespace. h.mu is held.
func (h *Helper) inNet(id uint64) *box {
	for _, b := range h.boxes {
		if b.netns != nil && b.netns.ID() == id {
			return b
		}
	}
	return nil
}

// namespaceOf opens the namespace of a held process.
func (h *Helper) namespaceOf(p Process) (Namespace, error) {
	n, err := h.cfg.Isolation.Of(p.PID())
	if err == nil && !p.Alive() { // it may be another's by now
		n.Close()
		err = fs.ErrNotExist
	}
	var unfit *Unfit
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, noSuchProcess(p.PID())
	case errors.As(err, &unfit):
		return nil, unfitFor(p, unfit)
	case err != nil:
		return nil, internal("read network namespace", err)
	}
	return n, nil
}

// alone says whether a namespace can be the box's own.
func (h *Helper) alone(n Namespace, p Process) error {
	host, err := h.cfg.Isolation.Host()
	if err != nil {
		return internal("read network namespace", err)
	}
	if n.ID() == host {
		return unfitFor(p, &Unfit{reasonHostNet, "it is in the host's network; a box of this mode has a network namespace of its own"})
	}
	users, err := n.Users()
	if err != nil {
		return internal("read network namespaces", err)
	}
	for _, pid := range users {
		if pid != p.PID() {
			return unfitFor(p, &Unfit{reasonSharedNet, fmt.Sprintf("process %d is in its network namespace too", pid)})
		}
	}
	return nil
}

// prepare makes the namespace ready and hands out the tap, if the box has one.
func (h *Helper) prepare(ctx context.Context, c request, b *box, p Process) error {
	var tap *lease.Tap
	if b.Mode == lease.ModeOwnIP {
		tap = &b.Tap
	}
	free, err := h.child(ctx, b.UID)
	if err != nil {
		return err
	}
	defer free()
	f, err := b.netns.Prepare(ctx, tap)
	var unfit *Unfit
	switch {
	case errors.As(err, &unfit):
		return unfitFor(p, unfit)
	case err != nil:
		return internal("prepare network namespace", err)
	}
	c.send(f)
	return nil
}

// stays says whether a process that was moved is where it was when it was looked at.
func (h *Helper) stays(b *box, p Process) error {
	n, err := h.namespaceOf(p)
	if err != nil {
		return err
	}
	defer n.Close()
	if n.ID() != b.NetNS {
		return unfitFor(p, &Unfit{reasonSharedNet, "it changed its network namespace while it was moved"})
	}
	return nil
}

// giveNet puts the namespace of a box into the reply, and returns its net plan. The descriptor is one of its
// own, since the box may end before the reply is written.
func (h *Helper) giveNet(c request, b *box) (api.NetPlan, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.netns != nil {
		fd, err := unix.FcntlInt(b.netns.File().Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return api.NetPlan{}, internal("duplicate descriptor", err)
		}
		c.send(os.NewFile(uintptr(fd), "netns"))
	}
	return netPlanOf(b.Lease), nil
}

// leaveNet lets go of the namespace of a box that did not come to be, or has ended.
func (h *Helper) leaveNet(b *box) error {
	h.mu.Lock()
	n := b.netns
	b.netns, b.NetNS = nil, 0
	h.mu.Unlock()
	if n == nil {
		return nil
	}
	return n.Close()
}

// dropTaps removes the tap of a box that ends, while its namespace is held.
func (h *Helper) dropTaps(ctx context.Context, b *box) error {
	h.mu.Lock()
	n := b.netns
	h.mu.Unlock()
	if n == nil || b.Mode != lease.ModeOwnIP {
		return nil
	}
	if err := n.RemoveTaps(ctx); err != nil {
		return fmt.Errorf("remove tap: %w", err)
	}
	return nil
}

// refind opens the namespace of a box again behind a restart: one that a process in its leaf is in, with the
// number that was recorded. A number of a namespace that is gone may be another's by now, so that of the host or of
// another box does not count; another one that a process of this leaf is in, is this box's as well. h.mu is held.
func (h *Helper) refind(b *box) {
	if h.cfg.Isolation == nil || b.NetNS == 0 {
		return
	}
	pids, err := b.leaf.Pids()
	host, herr := h.cfg.Isolation.Host()
	if err = errors.Join(err, herr); err != nil {
		h.log.Error("read network namespaces", "lease", b.ID, "cause", err)
		return
	}
	for _, pid := range slices.Backward(pids) {
		n, err := h.cfg.Isolation.Of(pid)
		if err != nil {
			continue // ended, or its threads differ: another one may tell
		}
		leaf, err := h.cfg.Tree.LeafOf(pid)
		if err == nil && leaf == b.ID && n.ID() == b.NetNS && n.ID() != host && h.inNet(n.ID()) == nil {
			b.netns = n
			return
		}
		n.Close()
	}
	h.log.Warn("network namespace gone", "lease", b.ID, "box", b.Name)
}

func unfitFor(p Process, u *Unfit) error {
	return &api.ProcessRefused{PID: p.PID(), Reason: u.Reason, Message: fmt.Sprintf("process %d cannot enter a box: %s", p.PID(), u.Text),
		Next: "start the child held, in a new network namespace that nobody else is in, then attach"}
}
