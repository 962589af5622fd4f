package proctest

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/linux/proc"
	"github.com/gominimal/minhost/verify/netlab"
)

// reaperChild starts a child, prints its number, and for each line of input tries to bury it.
func reaperChild([]string) int {
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "60"}, &os.ProcAttr{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(p.Pid)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		got, err := syscall.Wait4(p.Pid, nil, syscall.WNOHANG, nil)
		fmt.Println(got == p.Pid, err)
	}
	p.Kill()
	return 0
}

// reaper returns a process that is the parent of another one, and that one.
func reaper(t *testing.T) (*netlab.Proc, *proc.Process) {
	t.Helper()
	parent := netlab.Start(t, netlab.Spawn{Leaf: netlab.NoLeaf}, "reaper")
	pid, err := strconv.Atoi(parent.Line())
	if err != nil {
		t.Fatal(err)
	}
	p, err := proc.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Signal(unix.SIGKILL); p.Close() })
	return parent, p
}

// buried tries until the parent could bury its child, or time is up.
func buried(parent *netlab.Proc, within time.Duration) bool {
	for end := time.Now().Add(within); ; time.Sleep(time.Millisecond) {
		parent.Say("")
		if parent.Line() == "true <nil>" {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

func dead(t *testing.T, p *proc.Process) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if alive, err := p.Alive(); err != nil || !alive {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the process does not die")
		}
	}
}

// A process that dies while it is pinned keeps its number, whatever its parent does.
func TestPinKeepsTheNumber(t *testing.T) {
	parent, p := reaper(t)
	unpin, err := p.Pin()
	if err != nil {
		t.Fatal(err)
	}
	if alive, err := p.Alive(); !alive || err != nil {
		t.Fatalf("behind the pin: %v, %v", alive, err)
	}
	p.Signal(unix.SIGKILL)
	dead(t, p)
	if buried(parent, 100*time.Millisecond) || unix.Kill(p.PID(), 0) != nil {
		t.Error("its parent could bury it, so that its number was free")
	}
	unpin()
	unpin()
	if !buried(parent, 10*time.Second) {
		t.Error("nobody can bury it behind unpin")
	}
	if _, err := p.Pin(); err == nil {
		t.Error("a process that is gone was pinned")
	}
}

// Without a pin the number is free at once: what the test above shows is the pin's doing.
func TestUnpinnedNumberIsFree(t *testing.T) {
	parent, p := reaper(t)
	p.Signal(unix.SIGKILL)
	dead(t, p)
	if !buried(parent, 10*time.Second) || unix.Kill(p.PID(), 0) != unix.ESRCH {
		t.Error("it is still there")
	}
}

// A process notices nothing: a stopped one stays stopped, SIGCONT and other signals come through.
func TestPinChangesNothing(t *testing.T) {
	_, p := reaper(t)
	for i := range 100 {
		stop := i%2 == 0
		if stop {
			p.Signal(unix.SIGSTOP)
			state(t, p, "T")
		}
		unpin, err := p.Pin()
		if err != nil {
			t.Fatal(err)
		}
		if !stop {
			p.Signal(unix.SIGCONT) // waits for unpin
		}
		unpin()
		if stop {
			state(t, p, "T")
			p.Signal(unix.SIGCONT)
		}
		state(t, p, "S")
	}
	unpin, err := p.Pin()
	if err != nil {
		t.Fatal(err)
	}
	p.Signal(unix.SIGTERM)
	unpin()
	dead(t, p)
}

// state waits for a letter of /proc/PID/stat.
func state(t *testing.T, p *proc.Process, want string) {
	t.Helper()
	var got string
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
		if err != nil {
			t.Fatal(err)
		}
		if got = strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))[0]; got == want {
			return
		}
	}
	t.Fatalf("state %s, want %s", got, want)
}

// Who is traced already is somebody else's: no pin, and nothing is taken away from the tracer.
func TestPinTwice(t *testing.T) {
	_, p := reaper(t)
	unpin, err := p.Pin()
	if err != nil {
		t.Fatal(err)
	}
	defer unpin()
	if _, err := p.Pin(); err == nil {
		t.Error("pinned twice")
	}
}

func BenchmarkPin(b *testing.B) {
	p, err := proc.Open(netlab.Start(b, netlab.Spawn{Leaf: netlab.NoLeaf}, "hold").PID())
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	for b.Loop() {
		for {
			unpin, err := p.Pin()
			if err == nil {
				unpin()
				break
			}
		}
	}
}
