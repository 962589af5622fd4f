package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/helper"
	"github.com/gominimal/minhost/linux/cgroup"
	"github.com/gominimal/minhost/linux/proc"
)

// treePort is the tree as the helper sees it.
type treePort struct{ *cgroup.Tree }

func (t treePort) Create(id string) (helper.Leaf, error) { return leafPort(t.Tree.Create(id)) }
func (t treePort) Open(id string) (helper.Leaf, error)   { return leafPort(t.Tree.Open(id)) }

// leafPort keeps a nil *cgroup.Leaf from becoming a Leaf that is not nil.
func leafPort(l *cgroup.Leaf, err error) (helper.Leaf, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// processPort opens processes for the helper.
type processPort struct{}

func (processPort) Open(pid int) (helper.Process, error) { return held(proc.Open(pid)) }

// FromFD duplicates the descriptor: the message that brought it closes its own.
func (processPort) FromFD(f *os.File) (helper.Process, error) {
	d, err := duplicate(f)
	if err != nil {
		return nil, err
	}
	return held(proc.FromPidfd(d))
}

func held(p *proc.Process, err error) (helper.Process, error) {
	switch {
	case errors.Is(err, proc.ErrGone):
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case err != nil:
		return nil, err
	}
	return heldProcess{p}, nil
}

type heldProcess struct{ *proc.Process }

// Alive implements helper.Process; in doubt it is dead.
func (p heldProcess) Alive() bool {
	ok, err := p.Process.Alive()
	return ok && err == nil
}

// Kill implements helper.Process.
func (p heldProcess) Kill() error { return p.Signal(unix.SIGKILL) }

func (p heldProcess) Childless() (bool, error) {
	c, err := p.Children()
	return len(c) == 0, err
}

// Fit implements helper.Process: every fact is read from the process that is held.
func (p heldProcess) Fit(uid uint32, anyUID bool) error {
	uids, err := p.UIDs()
	if err != nil {
		return err
	}
	if !anyUID && !uids.All(uid) {
		return &helper.Unfit{Reason: "uid", Text: fmt.Sprintf("its user ids are not all %d", uid)}
	}
	if same, err := p.SamePIDNamespace(); err != nil || !same {
		return errors.Join(err, unless(same, &helper.Unfit{Reason: "pidns", Text: "it is in another pid namespace"}))
	}
	if childless, err := p.Childless(); err != nil || !childless {
		return errors.Join(err, unless(childless, &helper.Unfit{Reason: "children", Text: "it has children already"}))
	}
	holds, err := p.Holdings()
	if err != nil {
		return err
	}
	if bad := holds.Refused(); len(bad) > 0 {
		reason := "socket"
		if bad[0].Kind == proc.IOUring {
			reason = "io_uring"
		}
		return &helper.Unfit{Reason: reason, Text: fmt.Sprintf("it holds %s, which keeps the verdict of where it was made", bad[0])}
	}
	return nil
}

func unless(ok bool, e *helper.Unfit) error {
	if ok {
		return nil
	}
	return e
}
