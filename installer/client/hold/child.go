//go:build unix

package hold

import (
	"net"
	"os"
	"sync"
	"syscall"
)

// Child is a child of this program, held until Release. It leads a process group.
type Child struct {
	pid     int
	pidfd   *os.File
	control *net.UnixConn
	report  *os.File
	changes chan syscall.WaitStatus
	done    chan struct{}
	turn    sync.Mutex // one Release at a time

	mu       sync.Mutex // signals are sent while the child cannot be reaped
	reaped   bool
	released bool
	status   syscall.WaitStatus
	told     chan struct{} // closed when a launcher has told everything; nil without one
	ended    *syscall.WaitStatus
}

func newChild(pid, pidfd int, control *net.UnixConn, report *os.File) *Child {
	c := &Child{
		pid: pid, control: control, report: report,
		changes: make(chan syscall.WaitStatus, 16), done: make(chan struct{}),
	}
	if pidfd >= 0 {
		c.pidfd = os.NewFile(uintptr(pidfd), "pidfd")
	}
	go c.wait()
	return c
}

// PID is the process number. It is the child's until Done is closed.
func (c *Child) PID() int { return c.pid }

// Pidfd stands for the process; nil where the kernel has none (before Linux 5.2, macOS). It stays
// the Child's.
func (c *Child) Pidfd() *os.File { return c.pidfd }

// Changes tells when the target was stopped, and, without a launcher, continued. Nobody has to read it.
func (c *Child) Changes() <-chan syscall.WaitStatus { return c.changes }

// Done is closed when the child has ended and is reaped.
func (c *Child) Done() <-chan struct{} { return c.done }

// Status is how the target ended, or the child where that is unknown; meaningful once Done is closed.
func (c *Child) Status() syscall.WaitStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return *c.ended
	}
	return c.status
}

// Signal sends a signal to the child; os.ErrProcessDone when it has ended.
func (c *Child) Signal(s syscall.Signal) error { return c.send(c.pid, s) }

// SignalGroup sends a signal to the child's process group; os.ErrProcessDone when the child has
// ended, since the number of the group may be another's then.
func (c *Child) SignalGroup(s syscall.Signal) error { return c.send(-c.pid, s) }

func (c *Child) send(target int, s syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return os.ErrProcessDone
	}
	return syscall.Kill(target, s)
}

// Kill ends the child and returns when it is reaped. Of a child that is still held nothing ran.
func (c *Child) Kill() {
	_ = c.Signal(syscall.SIGKILL)
	<-c.done
}

// Close gives the descriptors back. A child that is still held ends.
func (c *Child) Close() {
	c.control.Close()
	c.report.Close()
	if c.pidfd != nil {
		c.pidfd.Close()
	}
}

// finish is called once, when the child is reaped.
func (c *Child) finish() {
	c.mu.Lock()
	told := c.told
	c.mu.Unlock()
	if told != nil {
		<-told // the report ends with the child
	}
	close(c.done)
}
