package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/linux/standalone"
)

func TestStartFails(t *testing.T) {
	for name, f := range map[string]struct {
		before func(*testing.T, standalone.Config) (after func())
		cause  string
	}{
		"helper dies": {func(t *testing.T, _ standalone.Config) func() { want(t, "helper.dies"); return func() {} }, "helper does not start: exit status 1; look: tail /run/minhost/log"},
		"port taken": {func(t *testing.T, _ standalone.Config) func() {
			l, err := net.ListenPacket("udp4", "127.0.0.1:15354")
			if err != nil {
				t.Fatal(err)
			}
			return func() { l.Close() }
		}, fmt.Sprintf("address already in use, held by lab.test, process %[1]d; end it (kill %[1]d)", os.Getpid())},
		"folder of others": {func(t *testing.T, c standalone.Config) func() {
			os.Mkdir(c.Run, 0o777)
			os.Chmod(c.Run, 0o777)
			return func() { os.Remove(c.Run) }
		}, "not a folder that only root can write"},
		"file in the way": {func(t *testing.T, c standalone.Config) func() {
			os.Mkdir(c.Run, 0o755)
			os.WriteFile(c.Socket, []byte("mine"), 0o644)
			return func() {
				if b, _ := os.ReadFile(c.Socket); string(b) != "mine" {
					t.Error("the file in the way was touched")
				}
				os.Remove(c.Socket)
			}
		}, "something that is no socket is in the way"},
	} {
		t.Run(name, func(t *testing.T) {
			c := setup(t)
			after := f.before(t, c)
			_, err := standalone.Start(t.Context(), c)
			if err == nil || !strings.Contains(err.Error(), f.cause) {
				t.Errorf("error: %v\nwant: %s", err, f.cause)
			}
			after()
			nothingRuns(t, c)
		})
	}
}

func TestStartGivesUp(t *testing.T) {
	c := setup(t)
	want(t, "helper.silent")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := standalone.Start(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error: %v", err)
	}
	nothingRuns(t, c)
}

func TestHolder(t *testing.T) {
	c := setup(t)
	c.Holder = "/sys/fs/cgroup/holder"
	if err := os.Mkdir(c.Holder, 0o755); err != nil {
		t.Fatal(err)
	}
	pid := start(t, c)
	cg, err := os.ReadFile("/proc/" + itoa(pid) + "/cgroup")
	if err != nil || !strings.Contains(string(cg), "0::/holder\n") {
		t.Errorf("supervisor: %q, %v", cg, err)
	}
	if s := sightOf(t, "helper", helperPID(t, c)); !strings.Contains(s.Cgroup, "0::/holder\n") {
		t.Errorf("helper: %q", s.Cgroup)
	}
	if err := standalone.Stop(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	until(t, "holder can be removed", func() bool { return os.Remove(c.Holder) == nil })
}

// TestLogBounded: a child that prints without end does not fill the memory.
func TestLogBounded(t *testing.T) {
	c := setup(t)
	want(t, "answerer.shouts")
	start(t, c)
	until(t, "log rotated", func() bool { _, err := os.Stat(c.Log + ".1"); return err == nil })
	os.Remove(seen + "/answerer.shouts")
	until(t, "log small", func() bool { i, err := os.Stat(c.Log); return err == nil && i.Size() <= 1<<20 })
	if i, err := os.Stat(c.Log + ".1"); err != nil || i.Size() > 1<<20 {
		t.Errorf("%v, %v", i, err)
	}
}

// TestForeground: what a container's entry point does, and how it ends.
func TestForeground(t *testing.T) {
	c := setup(t)
	cmd := exec.Command(c.Program, "supervise")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "helper answers", func() bool { _, err := dial("unix", c.Socket); return err == nil })
	cmd.Process.Signal(syscall.SIGHUP)
	time.Sleep(50 * time.Millisecond)
	helperPID(t, c)
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
	nothingRuns(t, c)
}

// TestGate: a child whose supervisor died before it wrote the child down never becomes anything.
func TestGate(t *testing.T) {
	c := setup(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	sock, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(c.Program, "exec-listen", "--names=x", "--gate", "--", "/usr/bin/touch", seen+"/ran")
	cmd.ExtraFiles = []*os.File{sock, read}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read.Close()
	write.Close()
	if err := cmd.Wait(); err == nil || asked("ran") {
		t.Errorf("ran without its gate: %v", err)
	}
}

func TestRunningNeedsRoot(t *testing.T) {
	c := setup(t)
	start(t, c)
	cmd := exec.Command(c.Program, "running", c.Lock)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "permission denied") {
		t.Errorf("%v %s", err, out)
	}
}
