package lab

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/linux/standalone"
)

func TestStartStop(t *testing.T) {
	c := setup(t)
	pid := start(t, c)
	if got, ok, err := standalone.Running(c.Lock); got != pid || !ok || err != nil {
		t.Errorf("running: %d, %v, %v; started %d", got, ok, err, pid)
	}
	for path, mode := range map[string]os.FileMode{c.Socket: 0o666 | os.ModeSocket, c.Run: 0o755 | os.ModeDir, c.Lock: 0o600, c.Log: 0o600} {
		if info, err := os.Lstat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v, want %v", path, info, err, mode)
		}
	}
	helper, answerer := helperPID(t, c), answererPID(t)
	for _, a := range []struct{ network, addr string }{
		{"tcp", "127.0.0.1:15353"}, {"udp", "127.0.0.1:15354"}, {"tcp", "127.0.0.1:15354"}, {"udp", "[::1]:15354"}, {"tcp", "[::1]:15354"},
	} {
		if got, err := dial(a.network, a.addr); err != nil || got != answerer {
			t.Errorf("%s %s: %d, %v", a.network, a.addr, got, err)
		}
	}
	if _, err := net.DialTimeout("tcp", "[::1]:15353", time.Second); err == nil {
		t.Error("[::1]:15353 is open")
	}
	var held *standalone.Held
	if _, err := standalone.Start(t.Context(), c); !errors.As(err, &held) || held.PID != pid {
		t.Errorf("second start: %v", err)
	}
	if out, err := exec.Command(c.Program, "supervise").CombinedOutput(); err == nil || !strings.Contains(string(out), "holds it already") {
		t.Errorf("second supervisor: %v %s", err, out)
	}
	if err := standalone.Stop(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if alive(pid) || alive(helper) || alive(answerer) {
		t.Error("something lives on after stop")
	}
	nothingRuns(t, c)
	if _, ok, err := standalone.Running(c.Lock); ok || err != nil {
		t.Errorf("running after stop: %v, %v", ok, err)
	}
	if err := standalone.Stop(t.Context(), c); err != nil {
		t.Errorf("second stop: %v", err)
	}
}

func TestRights(t *testing.T) {
	c := setup(t)
	t.Setenv("SECRET_OF_ROOT", "x")
	// What a shell leaves open for its children.
	leak, err := os.Open("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	if _, _, e := syscall.Syscall(syscall.SYS_FCNTL, leak.Fd(), syscall.F_SETFD, 0); e != 0 {
		t.Fatal(e)
	}
	start(t, c)
	a := sightOf(t, "answerer", answererPID(t))
	const id = "61353\t61353\t61353\t61353"
	for k, v := range map[string]string{
		"Uid": id, "Gid": id, "Groups": "", "NoNewPrivs": "1",
		"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000",
		"CapBnd": "0000000000000000", "CapAmb": "0000000000000000",
	} {
		if a.Status[k] != v {
			t.Errorf("answerer: %s is %q, want %q", k, a.Status[k], v)
		}
	}
	h := sightOf(t, "helper", helperPID(t, c))
	if !strings.HasPrefix(h.Status["Uid"], "0\t0") || h.Status["CapEff"] == "0000000000000000" {
		t.Errorf("helper: uid %q, capabilities %q", h.Status["Uid"], h.Status["CapEff"])
	}
	for role, s := range map[string]sight{"answerer": a, "helper": h} {
		for _, e := range s.Env {
			switch key, _, _ := strings.Cut(e, "="); key {
			case "PATH", "LC_ALL", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID":
			default:
				t.Errorf("%s has %s in its environment", role, e)
			}
		}
		for _, name := range s.Names {
			if name != role {
				t.Errorf("a socket of the %s is named %q", role, name)
			}
		}
		sockets := 0
		for fd, to := range s.FDs {
			switch {
			case strings.HasPrefix(to, "socket:"):
				sockets++
			case to == c.Log, to == "/dev/null", strings.HasPrefix(to, "anon_inode:"), strings.HasPrefix(to, "/proc/"), strings.HasPrefix(to, "/sys/fs/cgroup"):
			default:
				t.Errorf("%s has descriptor %s: %s", role, fd, to)
			}
		}
		if n := map[string]int{"answerer": 6, "helper": 1}[role]; sockets != n || len(s.Names) != n {
			t.Errorf("%s has %d sockets (%v), want %d", role, sockets, s.Names, n)
		}
		if s.Status["PPid"] == "1" {
			t.Errorf("%s is not the supervisor's child", role)
		}
	}
}

// TestRestart: both come back, on the same sockets, and a caller never sees a closed one.
func TestRestart(t *testing.T) {
	c := setup(t)
	pid := start(t, c)
	var refused atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			conn, err := net.Dial("unix", c.Socket)
			if err != nil {
				refused.Add(1)
			} else {
				conn.Close()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	for range 3 {
		old := helperPID(t, c)
		kill(t, old)
		until(t, "another helper answers", func() bool { p, err := dial("unix", c.Socket); return err == nil && p != old })
	}
	old := answererPID(t)
	kill(t, old)
	until(t, "another answerer answers", func() bool { p, err := dial("udp", "127.0.0.1:15353"); return err == nil && p != old })
	<-done
	if n := refused.Load(); n != 0 {
		t.Errorf("the helper's socket was closed %d times", n)
	}
	if got, ok, _ := standalone.Running(c.Lock); !ok || got != pid {
		t.Errorf("supervisor %d, was %d", got, pid)
	}
}

// TestSupervisorKilled: the pair goes on without it, and the next supervisor takes over.
func TestSupervisorKilled(t *testing.T) {
	c := setup(t)
	pid := start(t, c)
	helper, answerer := helperPID(t, c), answererPID(t)
	kill(t, pid)
	time.Sleep(50 * time.Millisecond)
	if h, a := helperPID(t, c), answererPID(t); h != helper || a != answerer {
		t.Errorf("without supervisor: helper %d, answerer %d", h, a)
	}
	if _, ok, _ := standalone.Running(c.Lock); ok {
		t.Error("a killed supervisor is running")
	}
	start(t, c)
	if h, a := helperPID(t, c), answererPID(t); h == helper || a == answerer || alive(helper) || alive(answerer) {
		t.Errorf("taken over: helper %d -> %d (alive %v), answerer %d -> %d (alive %v)", helper, h, alive(helper), answerer, a, alive(answerer))
	}
	kill(t, mustRun(t, c))
	if err := standalone.Stop(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	nothingRuns(t, c)
}

func mustRun(t *testing.T, c standalone.Config) int {
	t.Helper()
	pid, ok, err := standalone.Running(c.Lock)
	if !ok || err != nil {
		t.Fatalf("running: %v, %v", ok, err)
	}
	return pid
}
