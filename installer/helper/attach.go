package helper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// attach makes the verdict live and the name known, moves the process, and looks again. On any
// error it goes back step by step, and the lease is planned as before.
func (h *Helper) attach(ctx context.Context, c request, in api.AttachIn) (api.AttachOut, error) {
	b, err := h.begin(c, in.Lease)
	if err != nil {
		return api.AttachOut{}, err
	}
	err = h.bring(ctx, c, b, in.PID)
	h.mu.Lock()
	lost := ctx.Err() != nil // the reader of the connection saw its end
	switch {
	case lost:
		// Nobody can let the held child go or end the lease any more: not attached, but gone.
		b.State = lease.Ending
	case err != nil:
		b.State = lease.Planned
	default:
		b.State = lease.Attached
		h.counts.attaches++
		h.watchLeaf(b)
	}
	h.mu.Unlock()
	switch {
	case lost:
		h.log.Info("connection closed during attach", "lease", b.ID, "cause", err)
		h.finish(b, lease.OpAbandon) // logs, and tries again by itself
		return api.AttachOut{}, context.Canceled
	case err != nil:
		h.log.Info("attach failed", "lease", b.ID, "box", b.Name, "cause", err)
		return api.AttachOut{}, err
	}
	// The record was made before the move and says attaching: what that came to, replay reads from the
	// kernel. A second one would only cost time.
	h.log.Info("attached", "lease", b.ID, "box", b.Name, "address", text(b.Address), "leaf", b.leaf.Path())
	h.relinkSoon(b)
	h.tell(b, api.EventKindAttached, "attached")
	return api.AttachOut{}, nil
}

// begin takes a planned lease to attaching.
func (h *Helper) begin(c request, id string) (*box, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, _ := h.find(id)
	if b == nil || b.leaf == nil || b.UID != c.peer.UID && !c.root() {
		return nil, noSuchLease(id)
	}
	if err := answer(lease.Ask(b.State, lease.OpAttach), b.Lease, lease.OpAttach); err != nil {
		return nil, err
	}
	if b.owner != c.conn {
		return nil, refuse(c.method, "only the connection that planned a lease can attach it", "plan again on this connection")
	}
	b.State = lease.Attaching
	return b, nil
}

// steps are what has been done, each as the function that takes it back.
type steps []func() error

func (h *Helper) goBack(b *box, done steps) {
	for _, back := range slices.Backward(done) {
		if err := back(); err != nil {
			h.log.Error("going back", "lease", b.ID, "cause", err)
		}
	}
}

// bring does what an attach does to the host, in the order that never gives the process more than
// it may have: namespace, record, verdict, name, tap, move. A failure undoes what was done.
func (h *Helper) bring(ctx context.Context, c request, b *box, pid int) (err error) {
	p, err := h.process(c, pid)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := h.fit(c, p); err != nil {
		return err
	}
	var done steps
	defer func() {
		if err != nil {
			h.goBack(b, done)
		}
	}()
	if isolated(b.Mode) {
		if err := h.isolate(b, p); err != nil {
			return err
		}
		done = append(done, func() error { return h.leaveNet(b) })
	}
	done = append(done, func() error { return h.cfg.Store.Remove(b.ID) })
	if err := h.record(b); err != nil { // it may be there although: the sync of its folder comes last
		return internal("record lease", err)
	}
	if h.cfg.Table != nil {
		done = append(done, func() error { return h.ordered(b, func() error { return h.release(context.WithoutCancel(ctx), b) }) })
		if err := h.ordered(b, func() error { return h.enforce(ctx, b) }); err != nil {
			return internal("verdict", err)
		}
	}
	if b.Name != "" {
		done = append(done, func() error { return h.name(b, false) })
		if err := h.name(b, true); err != nil {
			return internal("publish name", err)
		}
	}
	if isolated(b.Mode) {
		if err := h.prepare(ctx, c, b, p); err != nil {
			return err
		}
	}
	return h.move(ctx, b, p)
}

// process opens the target of an Attach or Join: by the one descriptor of the message, or by pid.
func (h *Helper) process(c request, pid int) (Process, error) {
	var p Process
	var err error
	switch {
	case len(c.fds) > 1 || len(c.fds) == 1 && pid != 0:
		return nil, invalid("pid", errors.New("give a pid or one pidfd, not both"))
	case len(c.fds) == 1:
		p, err = h.cfg.Processes.FromFD(c.fds[0])
	case pid <= 0 || pid > 1<<22: // PID_MAX_LIMIT, proc(5)
		return nil, invalid("pid", fmt.Errorf("%d is no pid", pid))
	default:
		p, err = h.cfg.Processes.Open(pid)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noSuchProcess(pid)
	}
	if err != nil {
		return nil, invalid("pid", err)
	}
	return p, nil
}

func noSuchProcess(pid int) error {
	return &api.NoSuchProcess{PID: pid, Message: fmt.Sprintf("process %d does not exist any more", pid), Next: "start the child held, then attach"}
}

// fit checks a target process: the caller's, in no leaf, childless, without sockets.
func (h *Helper) fit(c request, p Process) error {
	pid := p.PID()
	err := p.Fit(c.peer.UID, c.root())
	if err == nil {
		var leaf string
		leaf, err = h.cfg.Tree.LeafOf(p.PID())
		if err == nil && leaf != "" {
			err = &Unfit{"in_leaf", "it is in the leaf of " + h.boxName(leaf) + " already"}
		}
	}
	if !p.Alive() { // what was read may be another's
		return noSuchProcess(pid)
	}
	var unfit *Unfit
	switch {
	case errors.As(err, &unfit):
		return &api.ProcessRefused{PID: pid, Reason: unfit.Reason,
			Message: fmt.Sprintf("process %d cannot enter a box: %s", pid, unfit.Text), Next: "start the child held and without sockets, then attach"}
	case err != nil:
		return internal("read process", err)
	}
	return nil
}

// boxName is how a message calls the box of a leaf.
func (h *Helper) boxName(id string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b := h.boxes[id]; b != nil && b.Name != "" {
		return "box " + b.Name
	}
	return "lease " + id
}

// record makes a lease durable, so that replay knows it after a crash.
func (h *Helper) record(b *box) error {
	h.mu.Lock()
	l := b.Lease
	h.mu.Unlock()
	h.expects(l.Policy)
	return h.cfg.Store.Put(l)
}
