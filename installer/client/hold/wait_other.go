//go:build unix && !linux

package hold

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
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
			c.finish()
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

// networkWord is not understood here.
const networkWord = "network"

func attributes(o Options, _ *int) (*syscall.SysProcAttr, error) {
	if o.Network || o.NetworkOf != 0 {
		return nil, errors.New("there are no network namespaces on this system")
	}
	return &syscall.SysProcAttr{Setpgid: !o.Session, Setsid: o.Session}, nil
}

func entering(_ int, args []string) (string, []string) { return self(), args }

func network([]string) error { return nil }

func duplicate(from, to int) error { return unix.Dup2(from, to) }

// closeFrom: there is no such call here, and /dev/fd is always there.
func closeFrom(uint) error { return errors.New("no /dev/fd") }
