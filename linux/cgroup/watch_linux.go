package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// WaitEmpty returns nil once the leaf has no process, in it or below, or the context's error. It
// costs no thread and no inotify instance (of which a user has 128): the kernel reports a change of
// cgroup.events as POLLPRI, an epoll descriptor turns that into plain readability, and that one the Go
// runtime can wait for.
func (l *Leaf) WaitEmpty(ctx context.Context) error {
	events, err := l.d.at("cgroup.events", unix.O_RDONLY)
	if gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer events.Close()
	poll, err := pollPriority(events)
	if err != nil {
		return fmt.Errorf("cgroup %s: watch: %w", l.name, err)
	}
	defer poll.Close()
	conn, err := poll.SyscallConn()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { poll.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var state error
	err = conn.Read(func(fd uintptr) bool {
		// Take the event first, read the file after: a change in between makes a new event.
		var one [1]unix.EpollEvent
		unix.EpollWait(int(fd), one[:], 0)
		var busy bool
		busy, state = readEvents(events)
		return !busy || state != nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(err, state)
}

// pollPriority returns an epoll descriptor that becomes readable when f reports POLLPRI.
func pollPriority(f *os.File) (*os.File, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	// Non-blocking tells os.NewFile to put it under the runtime's poller.
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	ev := unix.EpollEvent{Events: unix.EPOLLPRI}
	if err := unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, int(f.Fd()), &ev); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "epoll"), nil
}

// readEvents reads cgroup.events from its start; a removed cgroup has no process.
func readEvents(f *os.File) (busy bool, err error) {
	var buf [256]byte
	n, err := unix.Pread(int(f.Fd()), buf[:], 0)
	if gone(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return populated(buf[:n])
}
