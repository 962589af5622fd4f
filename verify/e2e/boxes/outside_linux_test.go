package boxes

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// outside is a network namespace at the other end of a veth: another host. The lab is 10.99.N.1 and
// fd99:N::1 there, the other host .2 and ::2.
type outside struct {
	h   *host
	net *os.File
	n   int32
}

var links atomic.Int32

func (h *host) outside() *outside {
	h.Helper()
	p := netlab.Start(h, netlab.Spawn{Leaf: netlab.NoLeaf, Cloneflags: syscall.CLONE_NEWNET}, "netlab-sleep")
	p.Line()
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", p.PID()))
	h.must(err)
	h.Cleanup(func() { f.Close() })
	o := &outside{h, f, links.Add(1)}
	near, far := fmt.Sprintf("near%d", o.n), fmt.Sprintf("far%d", o.n)
	h.run("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", fmt.Sprint(p.PID()))
	h.Cleanup(func() { h.run("ip", "link", "del", near) })
	up := func(dev, own4, own6 string) {
		h.run("ip", "addr", "add", own4+"/24", "dev", dev)
		h.run("ip", "addr", "add", own6+"/64", "dev", dev, "nodad")
		h.run("ip", "link", "set", dev, "up")
	}
	up(near, o.near4(), o.near6())
	o.do(func() {
		h.run("ip", "link", "set", "lo", "up")
		up(far, o.far4(), o.far6())
	})
	// IPv6 takes its time after a link came up.
	h.within(5*time.Second, "IPv6 over the veth", func() error {
		if d := (netlab.Dial{Network: "tcp", Address: atPort(o.far6(), 1)}.Do()); d.Errno != unix.ECONNREFUSED {
			return d.Errno
		}
		return nil
	})
	return o
}

func (o *outside) near4() string { return fmt.Sprintf("10.99.%d.1", o.n) }
func (o *outside) far4() string  { return fmt.Sprintf("10.99.%d.2", o.n) }
func (o *outside) near6() string { return fmt.Sprintf("fd99:%d::1", o.n) }
func (o *outside) far6() string  { return fmt.Sprintf("fd99:%d::2", o.n) }

// do runs f on a thread that is in the other host's namespace. Sockets made there stay there.
func (o *outside) do(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Setns(int(o.net.Fd()), unix.CLONE_NEWNET); err != nil {
			o.h.Error(err)
			return
		}
		f()
	}()
	<-done
}

// echo starts an echo server on the other host.
func (o *outside) echo(network, address string) (at string) {
	o.do(func() { at = netlab.Echo(o.h, network, address, 0) })
	return at
}

// dial reaches from the other host.
func (o *outside) dial(network, address string) (out netlab.Outcome) {
	o.do(func() { out = netlab.Dial{Network: network, Address: address}.Do() })
	return out
}
