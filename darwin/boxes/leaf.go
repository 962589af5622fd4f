package boxes

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"syscall"

	"github.com/gominimal/minhost/darwin/procs"
)

// Leaf is one box.
type Leaf struct {
	tree *Tree
	id   string
}

// ErrOccupied is the error of a second process: macOS could not hold it in the box.
var ErrOccupied = errors.New("a box on macOS is one attached process: a second one cannot join it")

// ID is a number that stays the same for a box.
func (l *Leaf) ID() uint64 {
	h := fnv.New64a()
	h.Write([]byte(l.id))
	return h.Sum64()
}

// IDs is ID: nothing is below a box.
func (l *Leaf) IDs() ([]uint64, error) { return []uint64{l.ID()}, nil }

// Path is empty: there is no folder of a box.
func (l *Leaf) Path() string { return "" }

// Move attaches a process.
func (l *Leaf) Move(pid int) error {
	now, _ := l.tree.look(l.id)
	if now.PID != 0 {
		return ErrOccupied
	}
	i, err := l.tree.Table.Info(pid)
	if err != nil {
		return err
	}
	return l.tree.store(l.id, note{BootID: l.tree.BootID, PID: pid, Start: i.Start, Leader: i.Group == pid})
}

// Pids is the attached process while it lives.
func (l *Leaf) Pids() ([]int, error) {
	n, ok := l.tree.look(l.id)
	if !ok || n.PID == 0 {
		return nil, nil
	}
	same, err := procs.Same(l.tree.Table, n.PID, n.Start)
	if err != nil || !same {
		return nil, err
	}
	return []int{n.PID}, nil
}

// Populated says whether the attached process lives.
func (l *Leaf) Populated() (bool, error) {
	pids, err := l.Pids()
	return len(pids) > 0, err
}

// WaitEmpty returns nil once the attached process has ended, or the context's error.
func (l *Leaf) WaitEmpty(ctx context.Context) error {
	n, ok := l.tree.look(l.id)
	if !ok || n.PID == 0 {
		return ctx.Err()
	}
	return l.tree.Table.Wait(ctx, n.PID, n.Start)
}

// Kill ends the attached process, and its process group where it leads one: that of a runner which
// attached a child of its own group would be the runner's.
func (l *Leaf) Kill() error {
	n, _ := l.tree.look(l.id)
	if n.PID <= 1 {
		return nil
	}
	same, err := procs.Same(l.tree.Table, n.PID, n.Start)
	if err != nil || !same {
		return err
	}
	target := n.PID
	if n.Leader {
		target = -n.PID
	}
	if err := l.tree.Kill(target); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill box: %w", err)
	}
	return nil
}

// Remove forgets the box; EBUSY while its process lives.
func (l *Leaf) Remove() error {
	live, err := l.Populated()
	if err != nil {
		return err
	}
	if live {
		return syscall.EBUSY
	}
	return l.tree.forget(l.id)
}

// Close has nothing to close.
func (l *Leaf) Close() error { return nil }
