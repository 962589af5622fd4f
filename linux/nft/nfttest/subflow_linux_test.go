package nfttest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// TestSubflows: where an admin lets MPTCP follow addresses that a server announces, the kernel dials them by itself, from
// no process. It does so in the cgroup of the connection (Linux 5.11): a box reaches those that its rules admit, and
// no server leads it to others.
func TestSubflows(t *testing.T) {
	l := newLab(t)
	l.belt()
	o := newOutside(l)
	if _, err := os.Stat("/proc/sys/net/mptcp/enabled"); err != nil {
		t.Skip("this kernel has no MPTCP")
	}
	other := netip.MustParseAddr(fmt.Sprintf("10.99.%d.9", o.N))
	limits := func(accepted string) {
		l.run("ip", "mptcp", "limits", "set", "subflows", "4", "add_addr_accepted", accepted)
	}
	limits("4")
	t.Cleanup(func() { limits("0") })
	o.do(func() {
		l.run("ip", "addr", "add", other.String()+"/24", "dev", o.FarLink)
		l.run("ip", "mptcp", "endpoint", "add", other.String(), "dev", o.FarLink, "signal")
		var lc net.ListenConfig
		lc.SetMultipathTCP(true)
		server, err := lc.Listen(l.ctx(), "tcp4", ":8000")
		l.must(err)
		t.Cleanup(func() { server.Close() })
		go func() {
			for {
				c, err := server.Accept()
				if err != nil {
					return
				}
				go io.Copy(c, c)
			}
		}()
	})
	for _, c := range []struct {
		who     string
		leaf    int
		follows bool
	}{
		{"the host", netlab.NoLeaf, true},
		{"a box that may reach both", l.box(allow(t, o.far()+" 8000 tcp", other.String()+" 8000 tcp")).FD(), true},
		{"a box that may reach the first", l.box(allow(t, o.far()+" 8000 tcp")).FD(), false},
	} {
		var wire int
		o.do(func() { wire = wireOf(l) })
		p := netlab.Start(t, netlab.Spawn{Leaf: c.leaf}, "subflow", o.far()+":8000")
		if line := p.Line(); line != "ok" {
			t.Fatalf("%s: %s", c.who, line)
		}
		n := 0
		for end := time.Now().Add(20 * time.Second); n == 0 && time.Now().Before(end) && (c.follows || time.Until(end) > 19*time.Second); {
			n += sentTo(wire, other)
		}
		if (n > 0) != c.follows {
			t.Errorf("%s: %d packets to the address that the server announced", c.who, n)
		}
		p.Stop()
	}
}

// sentTo counts packets that wait at a packet socket and go to an address.
func sentTo(fd int, to netip.Addr) (n int) {
	buf := make([]byte, 2000)
	for {
		got, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return n
		}
		if got >= 20 && netip.AddrFrom4([4]byte(buf[16:20])) == to {
			n++
		}
	}
}

// subflowChild keeps an MPTCP connection, says "ok" for its first octet, and ends with its input.
func subflowChild(args []string) int {
	d := net.Dialer{Timeout: netlab.Patience(time.Second)}
	d.SetMultipathTCP(true)
	c, err := d.DialContext(context.Background(), "tcp4", args[0])
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(octet(c))
	io.Copy(io.Discard, os.Stdin)
	return 0
}
