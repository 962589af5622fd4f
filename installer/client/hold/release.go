//go:build unix

package hold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Target is what a held child executes.
type Target struct {
	Path string   // of the file; no search
	Args []string // the first is the name
	Env  []string
	// Files are the target's descriptors from 3 on. It is told in LISTEN_FDS and LISTEN_PID, as
	// sd_listen_fds(3) reads them. They stay the caller's.
	Files []*os.File
	// Within is for the Launcher that the program has given to Main; empty: the child itself
	// executes the target.
	Within []byte
}

// ExecError says that the target could not be executed. The child has ended, or is about to.
type ExecError struct {
	Path string
	Err  syscall.Errno
}

func (e *ExecError) Error() string { return fmt.Sprintf("execute %s: %v", e.Path, e.Err) }
func (e *ExecError) Unwrap() error { return e.Err }

// SetupError says that the launcher could not make what the target was to run in. Nothing of the
// target ran, and the child is held as before: it can be released another way.
type SetupError struct{ Cause string }

func (e *SetupError) Error() string { return e.Cause }

// Release lets the child go, and returns when it executes the target, has ended, or the context does.
// The error is a *ExecError when the kernel refused to execute it, and a *SetupError when the child may
// be released again.
func (c *Child) Release(ctx context.Context, t Target) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	c.mu.Lock()
	before := c.released
	c.released = true
	c.mu.Unlock()
	if before {
		return errors.New("release: the child was released before")
	}
	err := c.release(ctx, t)
	if errors.As(err, new(*SetupError)) {
		c.mu.Lock()
		c.released = false
		c.mu.Unlock()
	}
	return err
}

func (c *Child) release(ctx context.Context, t Target) error {
	stop := context.AfterFunc(ctx, func() { c.control.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	err := send(c.control, t)
	if ctx.Err() != nil {
		c.control.Close() // half a target may be on its way: the child gives up
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("release child: %w", err)
	}
	stopRead := interruptible(ctx, c.report)
	defer stopRead()
	r, err := readRecord(c.report)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// The target may run already, and the signal that ended the context be meant for it: what is
		// there to read is read all the same.
		_ = c.report.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		r, err = readRecord(c.report)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.control.Close()
		return ctx.Err()
	case errors.Is(err, errNoRecord): // closed by the execution of the target, or by its end
	case err != nil:
		return fmt.Errorf("release child: %w", err)
	case r.kind == recordRefused:
		c.control.Close()
		return &ExecError{Path: t.Path, Err: syscall.Errno(r.value)}
	case r.kind == recordFailed:
		return &SetupError{r.text}
	case r.kind == recordRunning:
		c.mu.Lock()
		c.told = make(chan struct{})
		c.mu.Unlock()
		go c.listen()
	}
	c.control.Close() // a launcher waits for it before it ends
	return nil
}

// listen follows what a launcher tells of its target.
func (c *Child) listen() {
	defer close(c.told)
	for {
		r, err := readRecord(c.report)
		if errors.Is(err, os.ErrDeadlineExceeded) { // of the release, whose context may have ended meanwhile
			_ = c.report.SetReadDeadline(time.Time{})
			continue
		}
		if err != nil {
			return
		}
		switch r.kind {
		case recordStopped:
			c.change(syscall.WaitStatus(r.value<<8 | 0x7f)) // as wait(2) words it, on Linux and macOS
		case recordEnded:
			status := syscall.WaitStatus(r.value)
			c.mu.Lock()
			c.ended = &status
			c.mu.Unlock()
		}
	}
}

func (c *Child) change(s syscall.WaitStatus) {
	select {
	case c.changes <- s:
	default: // nobody reads
	}
}
