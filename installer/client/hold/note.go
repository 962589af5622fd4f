//go:build unix

package hold

import "syscall"

// note records one result of a wait; true when there will be no more. c.mu is held.
func (c *Child) note(pid int, s syscall.WaitStatus, err error) (ended bool) {
	switch {
	case err == syscall.EINTR || err == nil && pid == 0:
		return false
	case err != nil: // somebody else reaped it: all that is known is that it has ended
		c.reaped = true
		return true
	case s.Exited() || s.Signaled():
		c.reaped, c.status = true, s
		return true
	}
	c.change(s)
	return false
}
