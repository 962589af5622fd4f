package nfttest

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// outside is a network namespace at the other end of a veth: another host. The lab is 10.99.N.1 and
// fd99:N::1 there, the other host .2 and ::2.
type outside struct {
	t   testing.TB
	net *os.File
	n   int32
}

var links atomic.Int32

func newOutside(l *lab) *outside {
	l.Helper()
	p := netlab.Start(l, netlab.Spawn{Leaf: netlab.NoLeaf, Cloneflags: syscall.CLONE_NEWNET}, "netlab-sleep")
	p.Line()
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", p.PID()))
	l.must(err)
	l.Cleanup(func() { f.Close() })
	o := &outside{l, f, links.Add(1)}
	near, far := fmt.Sprintf("near%d", o.n), fmt.Sprintf("far%d", o.n)
	l.run("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", fmt.Sprint(p.PID()))
	l.Cleanup(func() { l.run("ip", "link", "del", near) })
	up := func(dev, host string) {
		l.run("ip", "addr", "add", fmt.Sprintf("10.99.%d.%s/24", o.n, host), "dev", dev)
		l.run("ip", "addr", "add", fmt.Sprintf("fd99:%d::%s/64", o.n, host), "dev", dev, "nodad")
		l.run("ip", "link", "set", dev, "up")
	}
	up(near, "1")
	o.do(func() {
		l.run("ip", "link", "set", "lo", "up")
		up(far, "2")
	})
	// IPv6 waits for the carrier, which the kernel tells at most once a second.
	for range 50 {
		out := netlab.Dial{Network: "tcp", Address: o.far6() + ":1"}.Do()
		if out.Errno == unix.ECONNREFUSED {
			return o
		}
		time.Sleep(20 * time.Millisecond)
	}
	l.Fatal("no IPv6 over the veth")
	return o
}

func (o *outside) near() string  { return fmt.Sprintf("10.99.%d.1", o.n) }
func (o *outside) far() string   { return fmt.Sprintf("10.99.%d.2", o.n) }
func (o *outside) near6() string { return fmt.Sprintf("[fd99:%d::1]", o.n) }
func (o *outside) far6() string  { return fmt.Sprintf("[fd99:%d::2]", o.n) }

// do runs f on a thread that is in the other host's namespace. Sockets made there stay there.
func (o *outside) do(f func()) {
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

// echo starts an echo server on the other host.
func (o *outside) echo(network, address string) (at string) {
	o.do(func() { at = netlab.Echo(o.t, network, address, 0) })
	return at
}

// dial reaches from the other host.
func (o *outside) dial(d netlab.Dial) (out netlab.Outcome) {
	o.do(func() { out = d.Do() })
	return out
}

// udp opens a datagram socket; the caller's thread decides where.
func udp(t testing.TB, port int) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: port})
	}
	if err != nil {
		t.Error(err)
	}
	tv := unix.Timeval{Usec: 200_000}
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// drain counts the datagrams that wait at a socket.
func drain(fd int) (n int) {
	for {
		if _, _, err := unix.Recvfrom(fd, make([]byte, 100), 0); err != nil {
			return n
		}
		n++
	}
}
