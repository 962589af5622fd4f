//go:build unix && !linux

package hold

import (
	"errors"
	"os"
	"syscall"
)

// wait follows the child until it is reaped.
func (c *Child) wait() {
	for {
		var status syscall.WaitStatus
		n, err := syscall.Wait4(c.pid, &status, syscall.WUNTRACED|syscall.WCONTINUED, nil)
		if err == syscall.EINTR {
			continue
		}
		c.mu.Lock()
		ended := c.note(n, status, err)
		c.mu.Unlock()
		if ended {
			close(c.done)
			return
		}
	}
}

func self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

func attributes(*int) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// closeFrom: there is no such call here, and /dev/fd is always there.
func closeFrom(uint) error { return errors.New("no /dev/fd") }
