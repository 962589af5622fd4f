package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Cmd says how a program is run. The zero value is root, running the standard build.
type Cmd struct {
	// UID is the user (and group), 0 for root. Groups are its further groups.
	UID    uint32
	Groups []uint32
	// Path replaces Binary(Standard).
	Path string
	// Env is added to PATH, HOME and LC_ALL, which are all that the program gets otherwise.
	Env []string
	// Stdin is empty by default.
	Stdin io.Reader
	// Leaf is the open directory of a cgroup in which it starts; 0 for where the test is.
	Leaf int
	// Timeout is 60 s by default. A program that runs longer is killed and fails the test.
	Timeout time.Duration
}

// Result is what a program did.
type Result struct {
	// Status is the exit status; 128+n for signal n.
	Status         int
	Stdout, Stderr string
	Took           time.Duration
}

func (r Result) String() string {
	return fmt.Sprintf("status %d after %v\nstdout: %s\nstderr: %s", r.Status, r.Took.Round(time.Millisecond), r.Stdout, r.Stderr)
}

// Run runs the standard program as root to its end.
func Run(t testing.TB, args ...string) Result {
	t.Helper()
	return Cmd{}.Run(t, args...)
}

// As runs the standard program as another user to its end.
func As(t testing.TB, uid uint32, args ...string) Result {
	t.Helper()
	return Cmd{UID: uid}.Run(t, args...)
}

// Must runs the standard program as root and fails the test when its status is not 0.
func Must(t testing.TB, args ...string) Result {
	t.Helper()
	r := Run(t, args...)
	r.Want(t, 0)
	return r
}

// Want fails the test when the status is another, or when standard error lacks one of the words.
func (r Result) Want(t testing.TB, status int, words ...string) {
	t.Helper()
	if r.Status != status {
		t.Fatalf("want status %d: %v", status, r)
	}
	for _, w := range words {
		if !strings.Contains(r.Stderr, w) {
			t.Errorf("standard error lacks %q: %v", w, r)
		}
	}
}

// Run runs the program to its end.
func (c Cmd) Run(t testing.TB, args ...string) Result {
	t.Helper()
	p := c.Start(t, args...)
	return p.Wait()
}

// Process is a running program. It is killed when the test ends.
type Process struct {
	t     testing.TB
	cmd   *exec.Cmd
	out   *lockedBuffer
	err   *lockedBuffer
	began time.Time
	done  chan struct{}
	limit time.Duration
}

// Start starts the program and returns at once.
func (c Cmd) Start(t testing.TB, args ...string) *Process {
	t.Helper()
	accounts(t)
	if c.Path == "" {
		c.Path = Binary(Standard)
	}
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, c.Path, args...)
	cmd.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "LC_ALL=C"}, c.Env...)
	cmd.Dir = "/"
	cmd.Stdin = c.Stdin
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// A child that lives on with our pipes must not keep Wait from returning.
	cmd.WaitDelay = time.Second
	if c.UID != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: c.UID, Gid: c.UID, Groups: c.Groups}
	}
	if c.Leaf != 0 {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, c.Leaf
	}
	p := &Process{t: t, cmd: cmd, out: &lockedBuffer{}, err: &lockedBuffer{}, began: time.Now(), done: make(chan struct{}), limit: c.Timeout}
	cmd.Stdout, cmd.Stderr = p.out, p.err
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatalf("start %s: %v", c.Path, err)
	}
	go func() {
		cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		cancel()
		<-p.done
	})
	return p
}

// PID of the program.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal; one that comes too late is no error.
func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !p.Ended() {
		p.t.Logf("signal %v: %v", s, err)
	}
}

// Ended tells whether the program has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Stdout and Stderr are what it printed so far.
func (p *Process) Stdout() string { return p.out.String() }
func (p *Process) Stderr() string { return p.err.String() }

// Await waits until standard output has the text; the test fails when the program ends without it
// or 20 s pass.
func (p *Process) Await(text string) {
	p.t.Helper()
	for end := time.Now().Add(20 * time.Second); !strings.Contains(p.Stdout(), text); time.Sleep(5 * time.Millisecond) {
		if p.Ended() && !strings.Contains(p.Stdout(), text) || time.Now().After(end) {
			p.t.Fatalf("no %q on standard output:\nstdout: %s\nstderr: %s", text, p.Stdout(), p.Stderr())
		}
	}
}

// Wait waits for the end of the program.
func (p *Process) Wait() Result {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(p.limit):
		p.cmd.Process.Kill()
		<-p.done
		p.t.Fatalf("%v: still ran after %v\nstdout: %s\nstderr: %s", p.cmd.Args, p.limit, p.Stdout(), p.Stderr())
	}
	r := Result{Stdout: p.Stdout(), Stderr: p.Stderr(), Took: time.Since(p.began), Status: p.cmd.ProcessState.ExitCode()}
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.Status = 128 + int(ws.Signal())
	}
	return r
}

// tool runs another program than minhost as root and returns its standard output.
func tool(t testing.TB, path string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("%s %v: %v: %s", path, args, err, exit.Stderr)
	}
	if err != nil {
		t.Fatalf("%s %v: %v", path, args, err)
	}
	return string(out)
}

// lockedBuffer is written by one goroutine and read by another.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
