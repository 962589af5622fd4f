//go:build unix

package hold

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Terminal is the controlling terminal of this program. A nil Terminal is none: its methods do
// nothing then. Its first use makes this program, and what it starts behind it, ignore SIGTTOU.
type Terminal struct {
	fd    int
	group int // of this program
}

// OpenTerminal opens the controlling terminal; nil when there is none.
func OpenTerminal() *Terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	return &Terminal{fd: fd, group: syscall.Getpgrp()}
}

// Close gives the descriptor back, not the terminal.
func (t *Terminal) Close() {
	if t != nil {
		unix.Close(t.fd)
	}
}

// Give puts the child's process group into the foreground if this program's is there, and says
// whether it was; a program in the background has nothing to give.
func (t *Terminal) Give(c *Child) (was bool) {
	if t == nil || c == nil || t.foreground() != t.group {
		return false
	}
	t.set(c.pid)
	return true
}

// Take puts this program's process group into the foreground if the child's is there, and says
// whether it was.
func (t *Terminal) Take(c *Child) (was bool) {
	if t == nil || c == nil || t.foreground() != c.pid {
		return false
	}
	t.set(t.group)
	return true
}

func (t *Terminal) foreground() int {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return -1
	}
	return group
}

// set changes the foreground group. From the background the kernel answers with SIGTTOU, which
// stops a program unless it is ignored. It stays ignored: Reset does not bring the default back
// (go 1.26, sigdisable). The child was started before and does not inherit that.
func (t *Terminal) set(group int) {
	signal.Ignore(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
}
