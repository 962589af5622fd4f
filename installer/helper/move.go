package helper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// move writes the pid, then requires that the process is alive, in the leaf, in its namespace, and without a
// child that stayed outside. Otherwise whatever got there goes back. The kernel takes a number here, not a
// handle: it is pinned, so that it stays the process's although that may die.
func (h *Helper) move(ctx context.Context, b *box, p Process) error {
	pid := p.PID()
	defer h.pin(p)()
	from, err := h.cfg.Tree.GroupOf(pid)
	if err != nil || !p.Alive() { // behind the pin
		return noSuchProcess(pid)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.leaf.Move(pid); err != nil {
		switch {
		case !p.Alive():
			return noSuchProcess(pid)
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENODEV):
			return leafGone(b)
		}
		return internal("move process", err)
	}
	h.mu.Lock()
	attaching := b.State == lease.Attaching
	h.mu.Unlock()
	if err = h.arrived(b, p, attaching); err == nil {
		h.follow(b, pid)
		return nil
	}
	h.sendBack(b, p, attaching, from)
	return err
}

// leafGone is for a leaf that somebody removed, of a box that is not ended yet.
func leafGone(b *box) error {
	return &api.WrongState{Lease: b.ID, State: string(lease.Attached), Message: fmt.Sprintf("the leaf of lease %s is gone", b.ID), Next: "end that lease, and plan again"}
}

// arrived looks at a process that was moved.
func (h *Helper) arrived(b *box, p Process, attaching bool) error {
	pid := p.PID()
	in, err := h.cfg.Tree.LeafOf(pid)
	childless, cerr := p.Childless()
	var nerr error
	if attaching && isolated(b.Mode) { // one that joins enters the namespace later
		nerr = h.stays(b, p)
	}
	switch {
	case !p.Alive():
		return noSuchProcess(pid)
	case err != nil || cerr != nil:
		return internal("read process", errors.Join(err, cerr))
	case !childless:
		return &api.ProcessRefused{PID: pid, Reason: "children", Message: fmt.Sprintf("process %d forked while it was moved", pid), Next: "start the child held, then attach"}
	case in != b.ID:
		return &api.ProcessRefused{PID: pid, Reason: "moved", Message: fmt.Sprintf("process %d did not stay in the leaf", pid), Next: "attach again"}
	}
	return nerr
}

// pin holds the number of a process. Where the host forbids it, or a debugger has the process, it goes on
// without: then another process may take the number of one that dies in the instant before the move. It is sent
// back, but to where the dead one was.
func (h *Helper) pin(p Process) (unpin func()) {
	unpin, err := p.Pin()
	if err != nil {
		h.log.Debug("number not pinned", "pid", p.PID(), "cause", err)
		return func() {}
	}
	return unpin
}

// sendBack returns a target that could not be attached or joined to its group. Until a box is attached
// all that is in its leaf came with the target. Of a live box nothing else may get out: a child that the
// target left behind stays inside.
func (h *Helper) sendBack(b *box, p Process, attaching bool, group string) {
	var err error
	if p.Alive() {
		err = h.cfg.Tree.Restore(p.PID(), group)
	}
	var pids []int
	if attaching {
		var lerr error
		pids, lerr = b.leaf.Pids()
		err = errors.Join(err, lerr)
	}
	for _, pid := range pids {
		if pid != p.PID() || !p.Alive() {
			err = errors.Join(err, h.expel(b, pid, group))
		}
	}
	if err != nil {
		h.log.Error("send back", "lease", b.ID, "cause", err)
	}
}

// expel puts a process that is in the leaf out of it, by its number, pinned.
func (h *Helper) expel(b *box, pid int, group string) error {
	p, err := h.cfg.Processes.Open(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer p.Close()
	defer h.pin(p)()
	if in, err := h.cfg.Tree.LeafOf(pid); err != nil || in != b.ID || !p.Alive() {
		return nil // it has ended, or is elsewhere
	}
	return h.cfg.Tree.Restore(pid, group)
}
