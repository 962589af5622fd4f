package host_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

const (
	lockPath  = "/run/minhost/apply.lock"
	holderEnv = "LOCK_TEST_ROOT"
)

// TestMain lets the test binary be the other process that holds the lock.
func TestMain(m *testing.M) {
	if root := os.Getenv(holderEnv); root != "" {
		os.Exit(hold(root))
	}
	os.Exit(m.Run())
}

func hold(root string) int {
	d, err := host.OpenDisk(root, nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	l, err := host.TakeLock(context.Background(), d, lockPath, 10*time.Second)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("held")
	io.ReadAll(os.Stdin)
	l.Release()
	return 0
}

// holder starts the other process; end lets it go.
func holder(t *testing.T, root string) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holderEnv+"="+root)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		stdin.Close()
		cmd.Wait()
	})
	t.Cleanup(end)
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "held\n" {
		t.Fatalf("holder says %q (%v)", line, err)
	}
	return cmd.Process.Pid, end
}

func lockRoot(t *testing.T) (*host.Disk, string) {
	t.Helper()
	d, root := fresh(t, nil)
	if err := os.Mkdir(root+"/run", 0o755); err != nil {
		t.Fatal(err)
	}
	return d.Disk, root
}

func TestLockNamesItsHolder(t *testing.T) {
	d, root := lockRoot(t)
	pid, end := holder(t, root)
	start := time.Now()
	_, err := host.TakeLock(t.Context(), d, lockPath, 60*time.Millisecond)
	var held *host.Held
	if !errors.As(err, &held) || held.PID != pid || !strings.Contains(err.Error(), fmt.Sprintf("ps -p %d", pid)) {
		t.Errorf("%v, want pid %d", err, pid)
	}
	if waited := time.Since(start); waited < 60*time.Millisecond {
		t.Errorf("gave up after %v", waited)
	}
	go func() {
		time.Sleep(50 * time.Millisecond)
		end()
	}()
	l, err := host.TakeLock(t.Context(), d, lockPath, 30*time.Second)
	if err != nil {
		t.Fatalf("after the holder went: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

// TestLockIsGoneWithItsFolder: undo leaves no residue, and a folder that was there stays.
func TestLockIsGoneWithItsFolder(t *testing.T) {
	for name, prepare := range map[string]func(root string){
		"folder is ours":      func(string) {},
		"folder was there":    func(root string) { os.Mkdir(root+"/run/minhost", 0o755) },
		"somebody's file too": func(root string) { hosttest.Put(t, root, "/run/minhost/theirs", "x", 0o644) },
	} {
		d, root := lockRoot(t)
		prepare(root)
		before := hosttest.Snapshot(root)
		for range 2 {
			l, err := host.TakeLock(t.Context(), d, lockPath, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Release(); err != nil {
				t.Fatal(err)
			}
		}
		l, err := host.TakeLock(t.Context(), d, lockPath, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Remove(); err != nil {
			t.Fatal(err)
		}
		if diff := hosttest.Diff(before, hosttest.Snapshot(root)); len(diff) > 0 {
			t.Errorf("%s: %q", name, diff)
		}
	}
}

// TestLockAfterRemove: who waits for a lock that is removed gets a new one that others see.
func TestLockAfterRemove(t *testing.T) {
	d, root := lockRoot(t)
	first, err := host.TakeLock(t.Context(), d, lockPath, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		other := exec.Command(os.Args[0])
		other.Env = append(os.Environ(), holderEnv+"="+root)
		out, err := other.Output() // stdin is empty: it lets go at once
		if string(out) != "held\n" {
			err = fmt.Errorf("%q: %w", out, err)
		}
		got <- err
	}()
	time.Sleep(100 * time.Millisecond) // it waits by now; if not, it makes a new file all the same
	if err := first.Remove(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	if _, err := d.Lstat(lockPath); err != nil {
		t.Errorf("the second lock has no file: %v", err)
	}
}

func TestLockFollowsNoLink(t *testing.T) {
	d, root := lockRoot(t)
	hosttest.Put(t, root, "/run/minhost/target", "theirs", 0o644)
	if err := os.Symlink("target", root+lockPath); err != nil {
		t.Fatal(err)
	}
	if _, err := host.TakeLock(t.Context(), d, lockPath, 0); !errors.Is(err, host.ErrNotRegular) {
		t.Error(err)
	}
}
