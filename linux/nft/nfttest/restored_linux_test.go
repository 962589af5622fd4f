package nfttest

import (
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// TestRestoredMark: somebody copies marks of connections to their packets, all of them (CONNMARK --restore-mark), so
// packets of boxes have our marks of flows before our rules see them. What is allowed goes on, under the
// belt, which lets no packet with the lease bit out by a device.
func TestRestoredMark(t *testing.T) {
	l := newLab(t)
	l.belt()
	o := newOutside(l)
	o.echo("tcp", ":8000")
	o.echo("udp", ":8000")
	l.run("nft", "add table inet theirs; add chain inet theirs o { type filter hook output priority -150; }; add rule inet theirs o meta mark set ct mark; "+
		"add chain inet theirs p { type filter hook prerouting priority -150; }; add rule inet theirs p meta mark set ct mark")
	t.Cleanup(func() { l.run("nft", "delete table inet theirs") })
	here, here6, datagrams := netlab.Echo(t, "tcp", "127.0.0.1:0", 0), netlab.Echo(t, "udp", "[::1]:0", 0), udp(t, 8002)
	b, closed := l.box(allow(t, o.far()+" 8000 tcp", o.far()+" 8000 udp", "127.0.0.1 "+port(here)+" tcp")), l.box(deny())
	at, _ := netlab.EchoIn(t, netlab.Spawn{Leaf: closed.FD()}, "tcp", "127.0.0.1:0", 0)
	for range 2 {
		l.reaches(b, "tcp", o.far()+":8000")
		l.reaches(b, "udp", o.far()+":8000")
		l.reaches(b, "tcp", here)
		l.reaches(closed, "tcp", at)
		l.refused(closed, "tcp", o.far()+":8000")
		l.refused(closed, "tcp", here)
		l.refused(b, "tcp", at)
		l.refused(closed, "udp", "127.0.0.1:8002")
		l.refused(closed, "udp", here6)
	}
	if n := drain(datagrams); n != 0 {
		t.Errorf("%d datagrams of a deny-all box arrived", n)
	}
}

// TestHostPriority: a process of the host is not taken for a box, whatever priority its packets have.
func TestHostPriority(t *testing.T) {
	l := newLab(t)
	b := l.box(deny())
	here := netlab.Echo(t, "tcp", "127.0.0.1:0", 0)
	inside, _ := netlab.EchoIn(t, netlab.Spawn{Leaf: b.FD()}, "tcp", "127.0.0.1:0", 0)
	for _, priority := range []int{6, 0x60000001, 0x70000001, 0x60000000, 0x7000ffff} {
		for _, address := range []string{here, inside} {
			d := net.Dialer{Timeout: 2 * time.Second, Control: func(_, _ string, c syscall.RawConn) error {
				var err error
				c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PRIORITY, priority) })
				return err
			}}
			c, err := d.Dial("tcp", address)
			if err != nil {
				t.Errorf("priority %#x, %s: %v", priority, address, err)
				continue
			}
			if got := octet(c); got != "ok" {
				t.Errorf("priority %#x, %s: %s", priority, address, got)
			}
			c.Close()
		}
	}
}

// TestRestoredMarkWithoutTable: marks that connections keep are none that the belt asks for, so that who restores
// them, while our table is away, lets nothing through: not a flow that was ended, not one of another generation.
func TestRestoredMarkWithoutTable(t *testing.T) {
	l := newLab(t)
	l.belt()
	o := newOutside(l)
	o.echo("tcp", ":8000")
	o.echo("tcp", ":8001")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	l.must(err)
	defer listener.Close()
	here := listener.Addr().String()
	var heard atomic.Int64 // octets that arrive at a service of this host
	go func() {
		if c, err := listener.Accept(); err == nil {
			defer c.Close()
			for buf := make([]byte, 16); ; {
				n, err := c.Read(buf)
				if heard.Add(int64(n)); err != nil {
					return
				}
			}
		}
	}()
	c := l.cutter()
	c.MarkOnly = true
	b := l.box(openEgress())
	holder := netlab.Start(t, netlab.Spawn{Leaf: b.FD()}, "hold", "tcp "+o.far()+":8000", "tcp "+o.far()+":8001", "tcp "+here)
	if line := holder.Line(); line != "ready" {
		t.Fatal(line)
	}
	l.tighten(c, b, allow(t, o.far()+" 8001 tcp"))
	l.run("nft", "add table inet theirs; add chain inet theirs o { type filter hook output priority -150; }; add rule inet theirs o meta mark set ct mark; "+
		"add chain inet theirs p { type filter hook prerouting priority -150; }; add rule inet theirs p meta mark set ct mark")
	t.Cleanup(func() { l.run("nft", "delete table inet theirs") })
	l.run("nft", "delete table inet minhost")
	holder.Say("how")
	if got, want := holder.Line(), "silence silence silence"; got != want {
		t.Errorf("without our table: %s, want %s", got, want)
	}
	if n := heard.Load(); n != 0 {
		t.Errorf("%d octets of an ended flow arrived at this host", n)
	}
}
