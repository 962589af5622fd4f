package standalone

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Start starts a supervisor that outlives the caller, and returns its pid once helper and answerer
// are ready. When they are not within 15 s, or one does not start, nothing of it is left running.
// *Held when there is one already.
func Start(ctx context.Context, c Config) (pid int, err error) {
	if err := c.check(); err != nil {
		return 0, err
	}
	if pid, ok, err := Running(c.Lock); err != nil || ok {
		return pid, errors.Join(err, &Held{Path: c.Lock, PID: pid})
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer read.Close()
	args := append([]string{c.Program}, c.SuperviseArgs...)
	args = append(args, fmt.Sprintf("--ready-fd=%d", firstFD))
	if c.Holder != "" {
		args = append(args, "--holder="+c.Holder)
	}
	cmd := &exec.Cmd{
		Path: c.Program, Args: args, Dir: "/", Env: env(),
		Stdin: null, Stdout: null, Stderr: null,
		ExtraFiles: []*os.File{write},
		// A session of its own: no terminal, and no signal of one.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	err = cmd.Start()
	write.Close()
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", c.Program, err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	if err := waitReady(ctx, read, c.Log); err != nil {
		return 0, errors.Join(err, abandon(ctx, c, cmd.Process, ended))
	}
	return cmd.Process.Pid, nil
}

// waitReady reads the supervisor's one line.
func waitReady(ctx context.Context, read *os.File, log string) error {
	deadline := time.Now().Add(readyWait)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := read.SetReadDeadline(deadline); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { read.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := bufio.NewReader(io.LimitReader(read, 4096)).ReadString('\n')
	line = strings.TrimSpace(line)
	switch said, failed := strings.CutPrefix(line, "failed: "); {
	case line == "ready":
		return nil
	case failed:
		return errors.New("supervise: " + said + cause(log))
	case errors.Is(err, os.ErrDeadlineExceeded):
		late := ctx.Err()
		if late == nil {
			late = context.DeadlineExceeded
		}
		return fmt.Errorf("supervise: helper and answerer not ready in time: %w%s; look: tail %s", late, cause(log), log)
	default:
		return fmt.Errorf("supervise: ended before it was ready: %q%s", line, cause(log))
	}
}

// abandon ends a supervisor that did not become ready, and what it left.
func abandon(ctx context.Context, c Config, p *os.Process, ended <-chan struct{}) error {
	p.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(2*termWait + time.Second):
		p.Kill()
		<-ended
	}
	return endLeft(context.WithoutCancel(ctx), c)
}
