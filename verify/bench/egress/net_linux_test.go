package egress

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// space is a network namespace that has another host at the end of a veth, with a sink at 10.97.0.2:8000
// for datagrams and connections.
type space struct{ ns *os.File }

const sink = "10.97.0.2:8000"

// here is the lab's own namespace, where the table is; apart is a fresh one.
func here(t testing.TB) space  { return newSpace(t, openNS(t, os.Getpid())) }
func apart(t testing.TB) space { return newSpace(t, child(t)) }

func child(t testing.TB) *os.File {
	p := netlab.Start(t, netlab.Spawn{Leaf: netlab.NoLeaf, Cloneflags: syscall.CLONE_NEWNET}, "netlab-sleep")
	p.Line()
	return openNS(t, p.PID())
}

func openNS(t testing.TB, pid int) *os.File {
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func newSpace(t testing.TB, ns *os.File) space {
	t.Helper()
	s, other := space{ns}, space{child(t)}
	other.do(t, func() {
		run(t, "ip", "link", "add", "far", "type", "veth", "peer", "name", "near")
		run(t, "ip", "link", "set", "lo", "up")
		run(t, "ip", "addr", "add", "10.97.0.2/24", "dev", "far")
		run(t, "ip", "link", "set", "far", "up")
		run(t, "ip", "link", "set", "near", "netns", fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.Fd()))
		sinks(t)
	})
	s.do(t, func() {
		run(t, "ip", "link", "set", "lo", "up")
		run(t, "ip", "addr", "add", "10.97.0.1/24", "dev", "near")
		run(t, "ip", "link", "set", "near", "up")
	})
	t.Cleanup(func() { s.do(t, func() { run(t, "ip", "link", "del", "near") }) })
	return s
}

// sinks takes connections and drops datagrams: nobody reads them, and little room is for them.
func sinks(t testing.TB) {
	udp, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		unix.SetsockoptInt(udp, unix.SOL_SOCKET, unix.SO_RCVBUF, 1)
		err = unix.Bind(udp, &unix.SockaddrInet4{Port: 8000})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(udp) })
	netlab.Echo(t, "tcp4", ":8000", 0)
}

// do runs f on a thread in the namespace.
func (s space) do(t testing.TB, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Setns(int(s.ns.Fd()), unix.CLONE_NEWNET); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}

// start runs a sender there.
func (s space) start(t testing.TB, leaf int, name, kind string) *sender {
	t.Helper()
	out := &sender{name: name, wall: map[int][]float64{}, cpu: map[int][]float64{}}
	s.do(t, func() {
		out.p = netlab.Start(t, netlab.Spawn{Leaf: leaf}, kind, sink)
		if line := out.p.Line(); line != "ready" {
			t.Error(line)
		}
	})
	return out
}

func run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func load(t testing.TB, rules string) {
	t.Helper()
	cmd := exec.Command("nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("nft: %v\n%s", err, out)
	}
}
