package netlab

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Outside is a network namespace at the other end of a veth: another host. The lab is 10.99.N.1 and
// fd99:N::1 there, the other host .2 and ::2.
type Outside struct {
	Near, Near6, Far, Far6 string // the addresses
	NearLink, FarLink      string // the ends of the veth
	N                      int32  // of this test binary's hosts: the third octet

	t   testing.TB
	net *os.File
}

var links atomic.Int32

// NewOutside makes another host for one test. It is reached over IPv4 and IPv6 when this returns.
func NewOutside(t testing.TB) *Outside {
	t.Helper()
	p := Start(t, Spawn{Leaf: NoLeaf, Cloneflags: syscall.CLONE_NEWNET}, "netlab-sleep")
	p.Line()
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	n := links.Add(1)
	four, six := fmt.Sprintf("10.99.%d.", n), fmt.Sprintf("fd99:%d::", n)
	o := &Outside{Near: four + "1", Near6: six + "1", Far: four + "2", Far6: six + "2",
		NearLink: fmt.Sprintf("near%d", n), FarLink: fmt.Sprintf("far%d", n), N: n, t: t, net: f}
	o.ip("link", "add", o.NearLink, "type", "veth", "peer", "name", o.FarLink, "netns", fmt.Sprint(p.PID()))
	t.Cleanup(func() { o.ip("link", "del", o.NearLink) })
	o.up(o.NearLink, o.Near, o.Near6)
	o.Do(func() {
		o.ip("link", "set", "lo", "up")
		o.up(o.FarLink, o.Far, o.Far6)
	})
	// IPv6 waits for the carrier, which the kernel tells at most once a second.
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		d := Dial{Network: "tcp", Address: "[" + o.Far6 + "]:1"}.Do()
		if d.Errno == unix.ECONNREFUSED {
			return o
		}
		if time.Now().After(end) {
			t.Fatalf("no IPv6 over the veth: %v", d)
		}
	}
}

func (o *Outside) up(link, four, six string) {
	o.ip("addr", "add", four+"/24", "dev", link)
	o.ip("addr", "add", six+"/64", "dev", link, "nodad")
	o.ip("link", "set", link, "up")
}

func (o *Outside) ip(args ...string) {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		o.t.Errorf("ip %v: %v\n%s", args, err, out)
	}
}

// Do runs f on a thread that is in the other host's namespace. Sockets made there stay there.
func (o *Outside) Do(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Setns(int(o.net.Fd()), unix.CLONE_NEWNET); err != nil {
			o.t.Error(err)
			return
		}
		f()
	}()
	<-done
}

// Echo starts an echo server on the other host.
func (o *Outside) Echo(network, address string) (at string) {
	o.Do(func() { at = Echo(o.t, network, address, 0) })
	return at
}

// Dial reaches from the other host.
func (o *Outside) Dial(d Dial) (out Outcome) {
	o.Do(func() { out = d.Do() })
	return out
}
