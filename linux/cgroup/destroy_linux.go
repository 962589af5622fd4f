package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// OccupiedError is Destroy's refusal: what is still in the tree.
type OccupiedError struct {
	Path   string
	Leaves []string // below boxes
	Pids   []int    // in the whole tree
}

func (e *OccupiedError) Error() string {
	return fmt.Sprintf("cgroup %s: still in use: leaves [%s], processes %v",
		e.Path, strings.Join(e.Leaves, " "), e.Pids)
}

// Destroy removes boxes, holder and the root when no leaf and no process is in them, else it removes
// nothing and returns *OccupiedError. Given names (as Report.Missing has them) it leaves the others of
// the three where they are. A tree that is not there is no error.
func (t *Tree) Destroy(only ...string) error {
	root, err := t.walk()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.close()
	occupied := &OccupiedError{Path: t.rel}
	boxes, err := root.sub(boxesName)
	if err == nil {
		occupied.Leaves, err = boxes.subs()
		boxes.close()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if occupied.Pids, err = pidsBelow(root); err != nil {
		return err
	}
	if len(occupied.Leaves)+len(occupied.Pids) > 0 {
		return occupied
	}
	t.letGo()
	chosen := func(d dir, name string) bool { return len(only) == 0 || slices.Contains(only, d.join(name)) }
	for _, name := range []string{boxesName, holderName} {
		if !chosen(root, name) {
			continue
		}
		if err := t.rmdir(root, name); err != nil {
			return err
		}
	}
	return t.destroyRoot(chosen)
}

func (t *Tree) destroyRoot(chosen func(dir, string) bool) error {
	above := t.top
	if n := len(t.parts) - 1; n > 0 {
		up := &Tree{top: t.top, parts: t.parts[:n]}
		var err error
		if above, err = up.walk(); err != nil {
			return err
		}
		defer above.close()
	}
	if name := t.parts[len(t.parts)-1]; chosen(above, name) {
		return t.rmdir(above, name)
	}
	return nil
}

func (t *Tree) rmdir(parent dir, name string) error {
	if err := t.gate.Pass("cgroup rmdir " + parent.join(name)); err != nil {
		return err
	}
	err := parent.rmdir(name)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
