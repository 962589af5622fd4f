package hold_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/client/hold"
)

// launcher is the simplest one: it starts the target as its own child, unless Within says otherwise.
func launcher(t hold.Target, files []int, tell hold.Tell) (int, error) {
	if string(t.Within) == "fail" {
		return 0, errors.New("no namespaces today")
	}
	pid, err := syscall.ForkExec(t.Path, t.Args, &syscall.ProcAttr{Env: t.Env, Files: []uintptr{0, 1, 2}})
	if err != nil {
		tell.Refused(err.(syscall.Errno))
		return 1, nil
	}
	tell.Running()
	for {
		var s syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &s, syscall.WUNTRACED, nil); err != nil {
			return 1, nil
		}
		if s.Stopped() {
			tell.Stopped(s.StopSignal())
			syscall.Kill(pid, syscall.SIGCONT)
			continue
		}
		tell.Ended(s)
		return 99, nil // the starter is told better
	}
}

func TestALauncherTellsOfItsTarget(t *testing.T) {
	c, out := start(t)
	target := script("echo out; kill -STOP $$; kill -USR1 $$")
	target.Within = []byte("a child")
	if err := c.Release(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	read(t, out, "out\n")
	select {
	case s := <-c.Changes():
		if !s.Stopped() || s.StopSignal() != syscall.SIGSTOP {
			t.Errorf("a change %v", s)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("no change")
	}
	<-c.Done()
	if s := c.Status(); !s.Signaled() || s.Signal() != syscall.SIGUSR1 {
		t.Errorf("status %v", s)
	}
}

func TestALauncherThatCannotPrepareHoldsOn(t *testing.T) {
	c, out := start(t)
	target := script("echo out; exit 3")
	target.Within = []byte("fail")
	err := c.Release(t.Context(), target)
	var setup *hold.SetupError
	if !errors.As(err, &setup) || setup.Cause != "no namespaces today" {
		t.Fatalf("Release: %v", err)
	}
	target.Within = nil
	if err := c.Release(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	read(t, out, "out\n")
	<-c.Done()
	if got := hold.ExitStatus(c.Status()); got != 3 {
		t.Errorf("exit status %d", got)
	}
}

func TestALauncherRefuses(t *testing.T) {
	c, _ := start(t)
	err := c.Release(t.Context(), hold.Target{Path: "/nonexistent", Args: []string{"x"}, Within: []byte("a child")})
	var e *hold.ExecError
	if !errors.As(err, &e) || e.Err != syscall.ENOENT {
		t.Errorf("Release: %v", err)
	}
	<-c.Done()
}

// Descriptors come as sd_listen_fds(3) wants them, where control and report were, and further; and
// nothing comes beside them.
func TestFilesOfATarget(t *testing.T) {
	for count := 1; count <= 4; count++ {
		c, out := start(t)
		target := script(`[ $LISTEN_PID = $$ ] && echo $LISTEN_FDS $LISTEN_FDNAMES; for i in /proc/$$/fd/*; do [ ${i##*/} -lt 3 ] || readlink $i; done; echo end`)
		target.Env = []string{"LISTEN_PID=1", "LISTEN_FDS=9", "LISTEN_FDNAMES=old", "PATH=/usr/bin:/bin"}
		want := strconv.Itoa(count) + "\n"
		for range count {
			f := listener(t)
			link, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
			if err != nil {
				t.Fatal(err)
			}
			want += link + "\n"
			target.Files = append(target.Files, f)
		}
		if err := c.Release(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		read(t, out, want+"end\n")
	}
}

func listener(t *testing.T) *os.File {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestANetworkOfItsOwn(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := hold.Start(t.Context(), hold.Options{Network: true, Stdout: w, Stderr: os.Stderr})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The trie has local addresses of interfaces that are up.
	line := `readlink /proc/self/ns/net; grep -c -m1 127.0.0.1 /proc/net/fib_trie; grep -c : /proc/net/dev`
	if err := c.Release(t.Context(), script(line)); err != nil {
		t.Fatal(err)
	}
	r.SetReadDeadline(time.Now().Add(10 * time.Second))
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	ours, _ := os.Readlink("/proc/self/ns/net")
	if got := strings.Fields(string(text)); len(got) != 3 || got[0] == ours || got[1] != "1" || got[2] != "1" {
		t.Errorf("the target shows %q; our namespace is %s", text, ours)
	}
}

// A context that ends when the target runs already does not lose it.
func TestTheContextEndsBehindTheRelease(t *testing.T) {
	for _, within := range []string{"", "a child"} {
		c, out := start(t)
		ctx, cancel := context.WithCancel(t.Context())
		c.Signal(syscall.SIGSTOP)
		<-c.Changes()
		released := make(chan error)
		target := script("echo out; exit 3")
		target.Within = []byte(within)
		go func() { released <- c.Release(ctx, target) }()
		time.Sleep(50 * time.Millisecond) // it waits for the report
		c.Signal(syscall.SIGCONT)
		read(t, out, "out\n")
		cancel()
		if err := <-released; err != nil {
			t.Errorf("within %q: %v", within, err)
		}
		<-c.Done()
		if got := hold.ExitStatus(c.Status()); got != 3 {
			t.Errorf("within %q: exit status %d", within, got)
		}
	}
}
