//go:build unix

package hold

import (
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
)

// Child is a child of this program, held until Release. It leads a process group.
type Child struct {
	pid             int
	pidfd           *os.File
	control, report *os.File
	changes         chan syscall.WaitStatus
	done            chan struct{}
	releasing       sync.Once

	mu     sync.Mutex // signals are sent while the child cannot be reaped
	reaped bool
	status syscall.WaitStatus
}

func newChild(pid, pidfd int, control, report *os.File) *Child {
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

// Changes tells when the child was stopped and continued. Nobody has to read it.
func (c *Child) Changes() <-chan syscall.WaitStatus { return c.changes }

// Done is closed when the child has ended and is reaped.
func (c *Child) Done() <-chan struct{} { return c.done }

// Status is how the child ended; meaningful once Done is closed.
func (c *Child) Status() syscall.WaitStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
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

// Target is what a held child executes.
type Target struct {
	Path string   // of the file; no search
	Args []string // the first is the name
	Env  []string
}

// ExecError says that the target could not be executed. The child has ended, or is about to.
type ExecError struct {
	Path string
	Err  syscall.Errno
}

func (e *ExecError) Error() string { return fmt.Sprintf("execute %s: %v", e.Path, e.Err) }
func (e *ExecError) Unwrap() error { return e.Err }

// Release lets the child go, once, and returns when it executes the target, has ended, or the
// context does. The error is a *ExecError when the kernel refused to execute it.
func (c *Child) Release(ctx context.Context, t Target) error {
	err := errors.New("release: the child was released before")
	c.releasing.Do(func() { err = c.release(ctx, t) })
	return err
}

func (c *Child) release(ctx context.Context, t Target) error {
	stop := context.AfterFunc(ctx, func() { c.control.Close() })
	defer stop()
	err := gob.NewEncoder(c.control).Encode(t)
	c.control.Close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("release child: %w", err)
	}
	stopRead := interruptible(ctx, c.report)
	defer stopRead()
	var code [4]byte
	switch _, err := io.ReadFull(c.report, code[:]); {
	case err == nil:
		return &ExecError{Path: t.Path, Err: syscall.Errno(binary.LittleEndian.Uint32(code[:]))}
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, io.EOF): // closed by the execution of the target, or by its end
		return nil
	default:
		return fmt.Errorf("release child: %w", err)
	}
}
