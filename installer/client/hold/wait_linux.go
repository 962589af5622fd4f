package hold

import (
	"math"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// wait follows the child until it is reaped. It looks without reaping first, so that the number
// is never free while send uses it.
func (c *Child) wait() {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, c.pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WCONTINUED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		var status syscall.WaitStatus
		c.mu.Lock()
		n, err := syscall.Wait4(c.pid, &status, unix.WNOHANG|unix.WUNTRACED|unix.WCONTINUED, nil)
		ended := c.note(n, status, err)
		c.mu.Unlock()
		if ended {
			c.finish()
			return
		}
	}
}

// self is this program even when its file was replaced or removed meanwhile.
func self() string { return "/proc/self/exe" }

func duplicate(from, to int) error {
	return os.NewSyscallError("dup3", unix.Dup3(from, to, 0))
}

// closeFrom marks every descriptor from first on to be closed on execution. Needs kernel 5.11.
func closeFrom(first uint) error {
	return os.NewSyscallError("close_range", unix.CloseRange(first, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC))
}
