//go:build unix

package hold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Command is the hidden subcommand under which the program must call Main.
const Command = "hold-child"

// Options say how a held child is started. Missing files are /dev/null.
type Options struct {
	Stdin, Stdout, Stderr *os.File
	// Dir is the working directory; that of this program when empty.
	Dir string
	// Session gives the child a session of its own, without a terminal, not just a process group.
	Session bool
	// Network gives it a network namespace of its own, whose loopback is up. Linux only; a caller
	// that is not root gets a user namespace around it, in which it is nobody else.
	Network bool
	// NetworkOf is a process whose network namespace, and the user namespace around it, the child
	// enters; 0 for none. Linux only, and by nsenter(1): a program of many threads can enter no user
	// namespace. Whether it was the right one has to be checked.
	NetworkOf int
}

// Start starts a child in a process group of its own and returns when it is held. The context
// bounds the start only; a child that is not held in time is killed and reaped.
func Start(ctx context.Context, o Options) (*Child, error) {
	c, err := begin(o)
	if err != nil {
		return nil, fmt.Errorf("start held child: %w", err)
	}
	if err := c.awaitReady(ctx); err != nil {
		c.Kill()
		c.Close()
		return nil, fmt.Errorf("start held child: %w", err)
	}
	return c, nil
}

func begin(o Options) (*Child, error) {
	files, opened, err := standard(o)
	defer closeAll(opened)
	if err != nil {
		return nil, err
	}
	control, controlChild, err := streams()
	if err != nil {
		return nil, err
	}
	report, reportChild, err := os.Pipe()
	if err != nil {
		control.Close()
		controlChild.Close()
		return nil, err
	}
	defer closeAll([]*os.File{controlChild, reportChild})

	pidfd := -1
	path, args := self(), []string{os.Args[0], Command}
	if o.Network {
		args = append(args, networkWord)
	}
	if o.NetworkOf != 0 {
		path, args = entering(o.NetworkOf, args)
	}
	attributes, err := attributes(o, &pidfd)
	if err != nil {
		control.Close()
		report.Close()
		return nil, err
	}
	process, err := os.StartProcess(path, args, &os.ProcAttr{
		Dir:   o.Dir,
		Env:   []string{}, // the target's comes with Release; GODEBUG and the like must not count here
		Files: append(files, controlChild, reportChild),
		Sys:   attributes,
	})
	if err != nil {
		control.Close()
		report.Close()
		return nil, err
	}
	c := newChild(process.Pid, pidfd, control, report)
	_ = process.Release() // from here on the child is waited for in c.wait only
	return c, nil
}

// awaitReady reads the first record of the report.
func (c *Child) awaitReady(ctx context.Context) error {
	stop := interruptible(ctx, c.report)
	defer stop()
	r, err := readRecord(c.report)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errNoRecord):
		return errors.New("it ended at once: this program does not serve " + Command)
	case err != nil:
		return err
	case r.kind == recordFailed:
		return errors.New(r.text)
	case r.kind != recordReady:
		return errors.New("it is another program than this one")
	}
	return nil
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
