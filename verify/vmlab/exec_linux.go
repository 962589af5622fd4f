package vmlab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Runner is the account of every root that is not root.
const Runner = "runner"

// Result is what a program did in a machine.
type Result struct {
	Args           []string
	Status         int // 128+n for signal n
	Stdout, Stderr string
	Took           time.Duration
}

func (r Result) String() string {
	return fmt.Sprintf("%s: status %d after %v\nstdout: %s\nstderr: %s",
		strings.Join(r.Args, " "), r.Status, r.Took.Round(time.Millisecond), r.Stdout, r.Stderr)
}

// runLimit bounds a program that is waited for.
const runLimit = 2 * time.Minute

// Try runs a program as root in the machine to its end, whatever that is.
func (m *Machine) Try(args ...string) Result {
	m.t.Helper()
	return m.try("", args)
}

// TryFor is Try with a bound of its own; status -1 when it ran longer. For moments when systemd stops
// every process (a soft-reboot): nsenter stops with its child, and nobody continues it.
func (m *Machine) TryFor(limit time.Duration, args ...string) Result {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var out bytes.Buffer
	cmd, started := m.command(ctx, "", args)
	defer started()
	cmd.Stdout, cmd.WaitDelay = &out, time.Second
	if err := cmd.Run(); err != nil {
		return Result{Status: -1}
	}
	return Result{Stdout: out.String()}
}

// Must does the same and fails the test when the status is not 0.
func (m *Machine) Must(args ...string) Result {
	m.t.Helper()
	r := m.Try(args...)
	if r.Status != 0 {
		m.t.Fatalf("%v", r)
	}
	return r
}

// TryAs runs it as another account.
func (m *Machine) TryAs(user string, args ...string) Result {
	m.t.Helper()
	return m.try(user, args)
}

// Sh runs a line of shell as root and fails the test when its status is not 0.
func (m *Machine) Sh(line string) Result {
	m.t.Helper()
	return m.Must("/bin/sh", "-ec", line)
}

func (m *Machine) try(user string, args []string) Result {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	var out, err bytes.Buffer
	cmd, started := m.command(ctx, user, args)
	defer started()
	cmd.Stdout, cmd.Stderr = &out, &err
	// A daemon that keeps our pipes must not keep Wait from returning.
	cmd.WaitDelay = time.Second
	start := time.Now()
	rerr := cmd.Run()
	if ctx.Err() != nil {
		m.t.Fatalf("%v: still ran after %v\nstdout: %s\nstderr: %s", args, runLimit, &out, &err)
	}
	if cmd.ProcessState == nil {
		m.t.Fatalf("%v: %v", args, rerr)
	}
	return Result{args, status(cmd), out.String(), err.String(), time.Since(start)}
}

func status(cmd *exec.Cmd) int {
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// environment is all that a program in a machine gets.
var environment = []string{"LC_ALL=C.UTF-8", "TERM=dumb", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

// command enters the machine: born in its root cgroup, then the namespaces of its process 1. The
// second function is to be called once it has started.
func (m *Machine) command(ctx context.Context, user string, args []string) (*exec.Cmd, func()) {
	m.t.Helper()
	group, err := os.Open(m.group)
	if err != nil {
		m.t.Fatal(err)
	}
	if user != "" {
		args = append([]string{"/usr/bin/setpriv", "--reuid", user, "--regid", user, "--init-groups", "--"}, args...)
	}
	cmd := exec.CommandContext(ctx, "nsenter", slices.Concat(
		[]string{"-t", strconv.Itoa(m.init), "-C", "-m", "-p", "-n", "-u", "-i", "-r", "-w", "--", "/usr/bin/env", "-i"}, environment, args)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	return cmd, func() { group.Close() }
}

// Process is a program that runs in a machine. It is killed when the test ends.
type Process struct {
	m        *Machine
	cmd      *exec.Cmd
	out, err *buffer
	done     chan struct{}
}

// Start starts a program as that account ("" for root) and returns at once.
func (m *Machine) Start(user string, args ...string) *Process {
	m.t.Helper()
	p := &Process{m: m, out: &buffer{}, err: &buffer{}, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	cmd, started := m.command(ctx, user, args)
	defer started()
	p.cmd = cmd
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.err
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		cancel()
		m.t.Fatalf("%v: %v", args, err)
	}
	go func() {
		p.cmd.Wait()
		close(p.done)
	}()
	m.t.Cleanup(func() {
		cancel()
		<-p.done
	})
	return p
}

// Ended tells whether it has ended.
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

// Await waits at most 20 s until standard output has the text; the test fails without it.
func (p *Process) Await(text string) {
	p.m.t.Helper()
	for end := time.Now().Add(20 * time.Second); !strings.Contains(p.Stdout(), text); time.Sleep(5 * time.Millisecond) {
		if p.Ended() && !strings.Contains(p.Stdout(), text) || time.Now().After(end) {
			p.m.t.Fatalf("no %q on standard output:\nstdout: %s\nstderr: %s", text, p.Stdout(), p.Stderr())
		}
	}
}

// Stop sends a signal and waits for the end, at most 20 s. The program is the only child of nsenter,
// which passes no signal on: it is found by its parent.
func (p *Process) Stop(s syscall.Signal) error {
	child, err := onlyChild(p.cmd.Process.Pid)
	if err == nil {
		err = syscall.Kill(child, s)
	}
	if err != nil && !p.Ended() {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(20 * time.Second):
		return errors.New("it does not end within 20 s")
	}
}

// buffer is written by one goroutine and read by another.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *buffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *buffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
