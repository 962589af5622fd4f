package cgroup

import (
	"errors"
	"io/fs"
)

// Remove removes the leaf and the cgroups below it, none of which is followed by a path of the box's
// making. The error is unix.EBUSY while processes live. A leaf that is gone, or whose name belongs to
// another one now, is no error and nothing is touched.
func (l *Leaf) Remove() error {
	boxes, err := l.tree.held()
	if err != nil {
		return err
	}
	now, err := boxes.sub(l.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer now.close()
	if id, err := now.id(); err != nil || id != l.id {
		return err
	}
	if err := l.gate().Pass("cgroup rmdir " + l.name); err != nil {
		return err
	}
	if err := removeBelow(now); err != nil {
		return err
	}
	if err := boxes.rmdir(l.name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeBelow removes the children of d, deepest first. It recurses: only a box run by root can make
// cgroups in its leaf, and such a box can undo its own verdict anyway (DESIGN.md 9).
func removeBelow(d dir) error {
	names, err := d.subs()
	if err != nil {
		return err
	}
	for _, name := range names {
		s, err := d.sub(name)
		if err == nil {
			err = removeBelow(s)
			s.close()
		}
		if err == nil {
			err = d.rmdir(name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
