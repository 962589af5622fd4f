package nfttest

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// TestRoutingHeader: a box sends no IPv6 packet with a routing header, whose last stop no rule sees; not to what its
// rules allow, not when its egress is open. Without the header it does, and this host does with it.
func TestRoutingHeader(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	to := strings.Trim(o.far6(), "[]")
	o.echo("udp", o.far6()+":8000")
	if got := netlab.InLeaf(t, netlab.NoLeaf, "routed", to); got != "option ok, send ok\n" {
		t.Fatalf("outside: %s", got)
	}
	for name, b := range map[string]*box{"open": l.box(openEgress()), "listed": l.box(allow(t, to+" any"))} {
		l.reaches(b, "udp", o.far6()+":8000")
		if got := netlab.InLeaf(t, b.FD(), "routed", to); got != "option ok, send EPERM\n" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// routedChild sends a datagram whose segment routing header (RFC 8754, type 4) ends at the address.
func routedChild(args []string) int {
	to := netip.MustParseAddr(args[0]).As16()
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM, 0)
	if err != nil {
		return 1
	}
	header := append([]byte{0, 2, 4, 0, 0, 0, 0, 0}, to[:]...) // 2 times 8 octets behind the first 8; no segment left
	set := unix.SetsockoptString(fd, unix.IPPROTO_IPV6, unix.IPV6_RTHDR, string(header))
	fmt.Printf("option %s, send %s\n", word(set), word(unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet6{Port: 8000, Addr: to})))
	return 0
}
