package helper

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// connector names the socket for the child of TestPeers, which connects and waits for its end.
const connector = "MINHOST_TEST_CONNECT"

// TestConnector is no test but the child.
func TestConnector(t *testing.T) {
	path := os.Getenv(connector)
	if path == "" {
		return
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.Copy(io.Discard, os.Stdin)
}

// peer is a process that connected, and what the kernel says about it.
type peer struct {
	Peer
	cmd *exec.Cmd
	in  io.Closer
}

func newPeer(t *testing.T) peer {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestConnector$")
	cmd.Env = append(os.Environ(), connector+"="+path)
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	l.SetDeadline(time.Now().Add(20 * time.Second))
	uc, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { uc.Close() })
	p, err := KernelPeers{}.Identify(uc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.release)
	return peer{p, cmd, in}
}

// TestPeers: who connected, and that its end is seen although the connection could be held by another process
// and the number given away.
func TestPeers(t *testing.T) {
	p := newPeer(t)
	if p.PID != p.cmd.Process.Pid || p.UID != uint32(os.Geteuid()) {
		t.Errorf("pid %d uid %d, want %d and %d", p.PID, p.UID, p.cmd.Process.Pid, os.Geteuid())
	}
	if want, err := os.Getgroups(); err != nil || len(want) != len(p.Groups) || len(want) > 0 && !slices.Contains(p.Groups, uint32(want[0])) {
		t.Errorf("groups %v, want %v", p.Groups, want)
	}
	old, err := heldByStart(p.PID)
	if err != nil {
		t.Fatal(err)
	}
	if p.Alive() != nil || old() != nil {
		t.Errorf("while it lives: %v, %v", p.Alive(), old())
	}
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if p.Alive() == nil || old() == nil {
		t.Error("its end is not seen")
	}
	if _, err := heldByStart(p.PID); err == nil {
		t.Error("a process that has ended is held")
	}
}

// TestPeerOfAnotherStart: the number is right and the time is not, as when it was given away.
func TestPeerOfAnotherStart(t *testing.T) {
	start, err := startTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	ticks, err := strconv.Atoi(start)
	if err != nil || ticks == 0 {
		t.Fatalf("start time %q", start)
	}
	if sameStart(os.Getpid(), start) != nil || sameStart(os.Getpid(), strconv.Itoa(ticks-1)) == nil {
		t.Error("processes are told apart by their number alone")
	}
}

// TestStartTimeBehindAnyName: the name of a process may look like the rest of the line.
func TestStartTimeBehindAnyName(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a) S 1 (b")
	text, err := os.ReadFile("/bin/sleep")
	if err == nil {
		err = os.WriteFile(name, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, "20")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	got, err := startTime(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
	if err != nil || strings.Count(string(stat), ")") < 2 {
		t.Fatalf("stat %q, %v", stat, err)
	}
	own, err := startTime(os.Getpid())
	if a, _ := strconv.Atoi(got); err != nil || len(got) < len(own) || strconv.Itoa(a) != got {
		t.Errorf("start %q; this process started at %q", got, own)
	}
}

// TestAliveAmongSignals: a signal to the thread that asks is no word about the process.
func TestAliveAmongSignals(t *testing.T) {
	for readable, want := range map[int]bool{0: true, 1: false} {
		interrupted := 2
		err := aliveBy(func() (int, error) {
			if interrupted--; interrupted >= 0 {
				return -1, unix.EINTR
			}
			return readable, nil
		})
		if alive := err == nil; alive != want {
			t.Errorf("behind two signals and %d: %v", readable, err)
		}
	}
	if err := aliveBy(func() (int, error) { return -1, unix.ENOMEM }); err == nil {
		t.Error("in doubt it lives")
	}
}
