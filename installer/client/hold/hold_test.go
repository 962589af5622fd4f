//go:build linux

package hold_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gominimal/minhost/installer/client/hold"
)

// The test binary is the program that Start runs again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case hold.Command:
			os.Exit(hold.Main(os.Args[2:], held))
		case "starter":
			os.Exit(starter(os.Args[2]))
		case "limit":
			os.Exit(limit())
		}
	}
	goleak.VerifyTestMain(m)
}

// held launches what Within names; see launch_linux_test.go.
func held(t hold.Target, files []int, tell hold.Tell) (int, error) { return launcher(t, files, tell) }

// start starts a held child whose standard output can be read from the file returned.
func start(t *testing.T) (*hold.Child, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c, err := hold.Start(t.Context(), hold.Options{Stdout: w, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kill()
		c.Close()
		r.Close()
	})
	return c, r
}

func script(text string) hold.Target {
	return hold.Target{Path: "/bin/sh", Args: []string{"sh", "-c", text}}
}

func TestTheTargetWaitsForTheRelease(t *testing.T) {
	c, out := start(t)
	out.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := out.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a held child wrote %d octets, %v", n, err)
	}
	target := hold.Target{
		Path: "/bin/sh", Args: []string{"name", "-c", `printf '%s|%s|%s' "$0" "$1" "$VALUE"`, "zero", "\xff one"},
		Env: []string{"VALUE=\xfe\n"},
	}
	if err := c.Release(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	out.SetReadDeadline(time.Time{})
	got, err := io.ReadAll(out)
	if want := "zero|\xff one|\xfe\n"; err != nil || string(got) != want {
		t.Errorf("the target wrote %q, %v; want %q", got, err, want)
	}
	<-c.Done()
	if s := hold.ExitStatus(c.Status()); s != 0 {
		t.Errorf("exit status %d", s)
	}
	if err := c.Release(t.Context(), target); err == nil {
		t.Error("released twice")
	}
}

func TestKilledBeforeReleaseNothingRan(t *testing.T) {
	c, out := start(t)
	mark := filepath.Join(t.TempDir(), "ran")
	c.Kill()
	if err := c.Release(t.Context(), script("touch "+mark)); err == nil {
		t.Error("a dead child was released")
	}
	if !c.Status().Signaled() || c.Status().Signal() != syscall.SIGKILL {
		t.Errorf("status %v", c.Status())
	}
	if rest, _ := io.ReadAll(out); len(rest) != 0 {
		t.Errorf("it wrote %q", rest)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the target ran")
	}
	if err := syscall.Kill(c.PID(), 0); err != syscall.ESRCH {
		t.Errorf("the child is not reaped: %v", err)
	}
	if err := c.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal to a reaped child: %v", err)
	}
	if err := c.SignalGroup(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal to its group: %v", err)
	}
}

func TestExecutionFails(t *testing.T) {
	folder := t.TempDir()
	plain := filepath.Join(folder, "plain")
	garbage := filepath.Join(folder, "garbage")
	if errors.Join(os.WriteFile(plain, nil, 0o644), os.WriteFile(garbage, []byte("\x00\x01"), 0o755)) != nil {
		t.Fatal("cannot write")
	}
	for name, c := range map[string]struct {
		path string
		want syscall.Errno
	}{
		"not there":         {filepath.Join(folder, "none"), syscall.ENOENT},
		"a folder":          {folder, syscall.EACCES},
		"not executable":    {plain, syscall.EACCES},
		"no known format":   {garbage, syscall.ENOEXEC},
		"a NUL in its name": {"/bin/s\x00h", syscall.EINVAL},
	} {
		t.Run(name, func(t *testing.T) {
			child, _ := start(t)
			err := child.Release(t.Context(), hold.Target{Path: c.path, Args: []string{"x"}})
			var e *hold.ExecError
			if !errors.As(err, &e) || e.Err != c.want || e.Path != c.path {
				t.Errorf("got %v, want %v", err, c.want)
			}
			<-child.Done()
		})
	}
}

// A starter that is killed takes its held child with it, and the target never runs.
func TestStarterDies(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := os.StartProcess("/proc/self/exe", []string{"test", "starter", mark}, &os.ProcAttr{Files: []*os.File{nil, w, os.Stderr}})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	var b [5]byte
	if _, err := io.ReadFull(r, b[:]); err != nil || string(b[:]) != "held\n" {
		t.Fatalf("starter said %q, %v", b, err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	// The pipe is open in the held child too: its end is the end of both.
	r.SetReadDeadline(time.Now().Add(5 * time.Second))
	if rest, err := io.ReadAll(r); err != nil || len(rest) != 0 {
		t.Errorf("the held child lives on: %q, %v", rest, err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the target ran")
	}
}

func starter(mark string) int {
	c, err := hold.Start(context.Background(), hold.Options{Stdout: os.Stdout})
	if err != nil {
		return 1
	}
	os.Stdout.WriteString("held\n")
	time.Sleep(time.Minute)
	c.Release(context.Background(), script("touch "+mark))
	return 0
}

// limit prints the limit of descriptors that a target has.
func limit() int {
	c, err := hold.Start(context.Background(), hold.Options{Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil || c.Release(context.Background(), script("ulimit -Sn")) != nil {
		return 1
	}
	<-c.Done()
	return hold.ExitStatus(c.Status())
}

func TestSignalsAndChanges(t *testing.T) {
	c, out := start(t)
	// No command in the loop: a shell that waits in vfork for a stopped child does not stop.
	if err := c.Release(t.Context(), script(`ulimit -t 60; trap 'exit 7' USR1; echo ready; while :; do :; done`)); err != nil {
		t.Fatal(err)
	}
	read(t, out, "ready\n")
	if group, err := syscall.Getpgid(c.PID()); err != nil || group != c.PID() {
		t.Errorf("process group %d, %v", group, err)
	}
	for _, step := range []struct {
		signal syscall.Signal
		want   func(syscall.WaitStatus) bool
	}{
		{syscall.SIGSTOP, syscall.WaitStatus.Stopped},
		{syscall.SIGCONT, syscall.WaitStatus.Continued},
	} {
		if err := c.SignalGroup(step.signal); err != nil {
			t.Fatal(err)
		}
		select {
		case s := <-c.Changes():
			if !step.want(s) {
				t.Errorf("after %v: %v", step.signal, s)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("no change after %v", step.signal)
		}
	}
	if err := c.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if got := hold.ExitStatus(c.Status()); got != 7 {
		t.Errorf("exit status %d", got)
	}
}

func TestExitStatusOfASignal(t *testing.T) {
	c, _ := start(t)
	if err := c.Release(t.Context(), script(`kill -TERM $$`)); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if got := hold.ExitStatus(c.Status()); got != 143 {
		t.Errorf("exit status %d", got)
	}
}

// A held child that is stopped cannot take its release: the context ends the wait.
func TestReleaseOfAStoppedChild(t *testing.T) {
	c, _ := start(t)
	if err := c.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	<-c.Changes()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Release(ctx, script("true")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Release: %v", err)
	}
}

func TestStartFails(t *testing.T) {
	if _, err := hold.Start(t.Context(), hold.Options{Dir: "/nonexistent"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such folder: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := hold.Start(ctx, hold.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestStandardFilesAreNull(t *testing.T) {
	c, out := start(t)
	if err := c.Release(t.Context(), script(`cat; echo end`)); err != nil {
		t.Fatal(err)
	}
	read(t, out, "end\n")
}

func TestLargeEnvironment(t *testing.T) {
	c, out := start(t)
	target := script(`echo ${#BIG0}`)
	for i := range 8 {
		target.Env = append(target.Env, "BIG"+string(rune('0'+i))+"="+strings.Repeat("x", 100_000))
	}
	if err := c.Release(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	read(t, out, "100000\n")
}

func read(t *testing.T, f *os.File, want string) {
	t.Helper()
	f.SetReadDeadline(time.Now().Add(10 * time.Second))
	b := make([]byte, len(want))
	if _, err := io.ReadFull(f, b); err != nil || !bytes.Equal(b, []byte(want)) {
		t.Fatalf("read %q, %v; want %q", b, err, want)
	}
}

// sorted lines of a text
func lines(b []byte) []string {
	l := strings.Fields(string(b))
	slices.Sort(l)
	return l
}
