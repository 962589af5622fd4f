package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/host"
)

// Leaf is one box's cgroup, held open: it keeps meaning the same directory when another takes its
// name. Safe for concurrent use until Close.
type Leaf struct {
	d    dir
	id   uint64
	name string
	tree *Tree
}

// Create makes the leaf boxes/<id>; fs.ErrExist when it is there already. It is closed to every
// packet until the table knows its id: the parent's default is refusal (CASES B28).
func (t *Tree) Create(id string) (*Leaf, error) {
	if err := checkName("mkdir", id); err != nil {
		return nil, err
	}
	boxes, err := t.held()
	if err != nil {
		return nil, err
	}
	d, err := t.make(boxes, id)
	if err != nil {
		return nil, err
	}
	return t.leaf(d, id)
}

// Open opens an existing leaf; fs.ErrNotExist when there is none.
func (t *Tree) Open(id string) (*Leaf, error) {
	if err := checkName("open", id); err != nil {
		return nil, err
	}
	boxes, err := t.held()
	if err != nil {
		return nil, err
	}
	d, err := boxes.sub(id)
	if err != nil {
		return nil, err
	}
	return t.leaf(d, id)
}

func (t *Tree) leaf(d dir, name string) (*Leaf, error) {
	id, err := d.id()
	if err != nil {
		d.close()
		return nil, err
	}
	return &Leaf{d: d, id: id, name: name, tree: t}, nil
}

// List names the leaves that exist, sorted.
func (t *Tree) List() ([]string, error) {
	boxes, err := t.held()
	if err != nil {
		return nil, err
	}
	names, err := boxes.subs()
	slices.Sort(names)
	return names, err
}

// LeafOf names the leaf that a process is in or below, "" when in none. A pid may be another
// process's by the time of the answer: hold a pidfd and ask it afterwards.
func (t *Tree) LeafOf(pid int) (string, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return "", err
	}
	return leafIn(t.rel, unifiedPath(text)), nil
}

// ID is the id that rules match.
func (l *Leaf) ID() uint64 { return l.id }

// Name is the lease id.
func (l *Leaf) Name() string { return l.name }

// Path is for display.
func (l *Leaf) Path() string { return path.Join(l.tree.mount.Point, l.d.name) }

// FD is the open directory, for SysProcAttr.CgroupFD. It stays the Leaf's.
func (l *Leaf) FD() int { return l.d.fd() }

// Dup opens the directory once more, for a process that is to be born in it. The caller closes it.
func (l *Leaf) Dup() (*os.File, error) {
	s, err := l.d.sub(".")
	return s.f, err
}

// Close closes the descriptor; the leaf stays.
func (l *Leaf) Close() error { return l.d.close() }

// Move puts a process with all its threads, not its children, into the leaf. unix.ESRCH when there
// is no such process.
func (l *Leaf) Move(pid int) error {
	if err := l.gate().Pass(fmt.Sprintf("cgroup move %d into %s", pid, l.name)); err != nil {
		return err
	}
	return move(l.d, pid)
}

func move(d dir, pid int) error {
	if pid <= 0 { // the kernel reads 0 as the writer itself
		return fmt.Errorf("cgroup %s: move process %d: %w", d.name, pid, unix.ESRCH)
	}
	if err := d.write("cgroup.procs", strconv.Itoa(pid)); err != nil {
		return fmt.Errorf("cgroup %s: move process %d: %w", d.name, pid, err)
	}
	return nil
}

// Pids lists the processes in the leaf and below it, sorted.
//
// One that somebody has removed has none, as it is empty for WaitEmpty.
func (l *Leaf) Pids() ([]int, error) {
	all, err := pidsBelow(l.d)
	if gone(err) {
		return nil, nil
	}
	return all, err
}

func pidsBelow(d dir) ([]int, error) {
	text, err := d.read("cgroup.procs")
	// The processes of a threaded cgroup are listed by the domain above it.
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return nil, err
	}
	all, err := pids(text)
	if err != nil {
		return nil, err
	}
	err = d.each(func(s dir) error {
		below, err := pidsBelow(s)
		all = append(all, below...)
		return err
	})
	slices.Sort(all)
	return slices.Compact(all), err
}

// IDs lists the ids of the leaf and of the cgroups below it, its own first. A socket keeps the id of
// the one that it was made in.
func (l *Leaf) IDs() ([]uint64, error) {
	ids := []uint64{l.id}
	err := idsBelow(l.d, &ids)
	if gone(err) { // a leaf that was removed has none below
		err = nil
	}
	return ids, err
}

func idsBelow(d dir, ids *[]uint64) error {
	return d.each(func(s dir) error {
		id, err := s.id()
		if err != nil {
			return err
		}
		*ids = append(*ids, id)
		return idsBelow(s, ids)
	})
}

// each calls do for every child; children that go away meanwhile are passed over.
func (d dir) each(do func(dir) error) error {
	names, err := d.subs()
	for _, name := range names {
		s, open := d.sub(name)
		if open == nil {
			open = do(s)
			s.close()
		}
		if open != nil && !errors.Is(open, fs.ErrNotExist) && !errors.Is(open, unix.ENODEV) {
			err = errors.Join(err, open)
		}
	}
	return err
}

// Populated tells whether a process lives in the leaf or below it. A removed leaf has none.
func (l *Leaf) Populated() (bool, error) {
	text, err := l.d.read("cgroup.events")
	if gone(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return populated(text)
}

// Kill sends SIGKILL to every process in the leaf and below it, forks in flight included. It does
// not wait for them to end.
func (l *Leaf) Kill() error {
	if err := l.gate().Pass("cgroup kill " + l.name); err != nil {
		return err
	}
	err := l.d.write("cgroup.kill", "1")
	if errors.Is(err, fs.ErrNotExist) {
		if _, there := l.d.read("cgroup.events"); gone(there) {
			return nil
		}
		// No loop over pids instead: a box that forks wins against it.
		return fmt.Errorf("cgroup %s: kill: this kernel has no cgroup.kill, which came with 5.14", l.name)
	}
	if gone(err) {
		return nil
	}
	return err
}

func (l *Leaf) gate() host.Gate { return l.tree.gate }

// gone: the directory was removed while it was open.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV)
}
