package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"
)

// nodeName is the place beside boxes of what is in no box and is to be counted: node/<uid>. A tree has none until
// the first runner asks to be counted. Nothing is judged there, and no program of ours is attached.
const nodeName = "node"

// NodeID is the cgroup id of node; fs.ErrNotExist where nobody asked to be counted yet.
func (t *Tree) NodeID() (uint64, error) {
	d, err := t.walk(nodeName)
	if err != nil {
		return 0, err
	}
	defer d.close()
	return d.id()
}

// MakeRunner makes node/<uid> and what is missing above it, and returns the cgroup id of node.
func (t *Tree) MakeRunner(uid uint32) (uint64, error) {
	root, err := t.walk()
	if err != nil {
		return 0, err
	}
	defer root.close()
	node, err := t.have(root, nodeName)
	if err != nil {
		return 0, err
	}
	defer node.close()
	d, err := t.have(node, fmt.Sprint(uid))
	if err != nil {
		return 0, err
	}
	d.close()
	return node.id()
}

// have opens a directory, made when it is not there.
func (t *Tree) have(parent dir, name string) (dir, error) {
	d, err := parent.sub(name)
	if errors.Is(err, fs.ErrNotExist) {
		if d, err = t.make(parent, name); errors.Is(err, fs.ErrExist) { // two at once
			d, err = parent.sub(name)
		}
	}
	return d, err
}

// MoveRunner puts a process with all its threads into node/<uid>, which MakeRunner made; its children of before stay
// where they are. unix.ESRCH when there is no such process.
func (t *Tree) MoveRunner(uid uint32, pid int) error {
	d, err := t.walk(nodeName, fmt.Sprint(uid))
	if err != nil {
		return err
	}
	defer d.close()
	if err := t.gate.Pass(fmt.Sprintf("cgroup move %d into %s", pid, d.name)); err != nil {
		return err
	}
	return move(d, pid)
}

// Runners tells the accounts that have a place below node, by its cgroup id.
func (t *Tree) Runners() (map[uint64]uint32, error) {
	out := map[uint64]uint32{}
	node, err := t.walk(nodeName)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	defer node.close()
	err = node.each(func(d dir) error {
		uid, err := strconv.ParseUint(d.name[len(node.name)+1:], 10, 32)
		if err != nil {
			return nil // not ours
		}
		id, err := d.id()
		out[id] = uint32(uid)
		return err
	})
	return out, err
}

// RemoveRunners removes node. Processes that live there go to the root of the mount: the cgroups that they came from
// may be gone by now.
func (t *Tree) RemoveRunners() error {
	root, err := t.walk()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.close()
	node, err := root.sub(nodeName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer node.close()
	if err := t.gate.Pass("cgroup rmdir " + node.name); err != nil {
		return err
	}
	for range 100 { // they may start others meanwhile
		live, err := pidsBelow(node)
		if err != nil {
			return err
		}
		for _, pid := range live {
			if err := move(t.top, pid); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
		if len(live) == 0 {
			break
		}
	}
	if err := removeBelow(node); err != nil {
		return err
	}
	return root.rmdir(nodeName)
}
