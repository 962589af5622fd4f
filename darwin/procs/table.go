package procs

import (
	"context"
	"errors"
	"io/fs"
	"time"
)

// Info is one process at one moment.
type Info struct {
	PID, Parent, Group int
	// UIDs are the real, effective and saved user id.
	UIDs [3]uint32
	// Start tells it from an earlier process of the same pid: seconds and microseconds of the kernel.
	Start string
}

// Table is the edge to the kernel's processes.
type Table interface {
	// Info is fs.ErrNotExist for a pid that nobody has, and for one whose process is ending or has ended
	// and waits for its parent.
	Info(pid int) (Info, error)
	// Wait returns nil once the process that started then has ended, or the context's error.
	Wait(ctx context.Context, pid int, start string) error
}

// Same tells whether pid still is the process that started then.
func Same(t Table, pid int, start string) (bool, error) {
	i, err := t.Info(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && i.Start == start, err
}

// maxDepth bounds the way up to launchd.
const maxDepth = 64

// Above calls visit for a process and everything that started it, until visit says stop.
func Above(t Table, pid int, visit func(Info) (stop bool)) error {
	for range maxDepth {
		i, err := t.Info(pid)
		if err != nil {
			return err
		}
		if visit(i) || i.Parent <= 1 || i.Parent == pid {
			return nil
		}
		pid = i.Parent
	}
	return nil
}

// poll waits for the end of a process by looking again and again, where nothing better is to be had.
func poll(ctx context.Context, t Table, pid int, start string, every time.Duration) error {
	for {
		if ok, err := Same(t, pid, start); err != nil || !ok {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}
