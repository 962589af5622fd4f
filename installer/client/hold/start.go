//go:build unix

package hold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// Command is the hidden subcommand under which the program must call Main.
const Command = "hold-child"

// Options say how a held child is started. Missing files are /dev/null.
type Options struct {
	Stdin, Stdout, Stderr *os.File
	// Dir is the working directory; that of this program when empty.
	Dir string
}

// readyByte is what a held child writes when nothing of this program is open in it any more.
const readyByte = 'h'

// Start starts a child in a process group of its own and returns when it is held. The context
// bounds the start only; a child that is not held in time is killed and reaped.
func Start(ctx context.Context, o Options) (*Child, error) {
	files, opened, err := standard(o)
	defer closeAll(opened)
	if err != nil {
		return nil, fmt.Errorf("start held child: %w", err)
	}
	controlRead, control, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start held child: %w", err)
	}
	report, reportWrite, err := os.Pipe()
	if err != nil {
		closeAll([]*os.File{controlRead, control})
		return nil, fmt.Errorf("start held child: %w", err)
	}
	defer closeAll([]*os.File{controlRead, reportWrite})

	pidfd := -1
	process, err := os.StartProcess(self(), []string{os.Args[0], Command}, &os.ProcAttr{
		Dir:   o.Dir,
		Env:   []string{}, // the target's comes with Release; GODEBUG and the like must not count here
		Files: append(files, controlRead, reportWrite),
		Sys:   attributes(&pidfd),
	})
	if err != nil {
		closeAll([]*os.File{control, report})
		return nil, fmt.Errorf("start held child: %w", err)
	}
	c := newChild(process.Pid, pidfd, control, report)
	_ = process.Release() // from here on the child is waited for in c.wait only
	if err := c.awaitReady(ctx); err != nil {
		c.Kill()
		c.Close()
		return nil, fmt.Errorf("start held child: %w", err)
	}
	return c, nil
}

// awaitReady reads the first byte of the report.
func (c *Child) awaitReady(ctx context.Context) error {
	stop := interruptible(ctx, c.report)
	defer stop()
	var b [1]byte
	_, err := io.ReadFull(c.report, b[:])
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, io.EOF):
		return errors.New("it ended at once: this program does not serve " + Command)
	case err != nil:
		return err
	case b[0] != readyByte:
		return errors.New("it is another program than this one")
	}
	return nil
}

// interruptible ends a read of f when the context ends.
func interruptible(ctx context.Context, f *os.File) (stop func() bool) {
	return context.AfterFunc(ctx, func() { f.SetReadDeadline(time.Unix(1, 0)) })
}

// standard gives the three descriptors, and those that were opened for it.
func standard(o Options) (files, opened []*os.File, err error) {
	for _, f := range []*os.File{o.Stdin, o.Stdout, o.Stderr} {
		if f == nil {
			if f, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
				return nil, opened, err
			}
			opened = append(opened, f)
		}
		files = append(files, f)
	}
	return files, opened, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// ExitStatus is what a shell says of an ended process: its status, or 128 and the signal.
func ExitStatus(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}
