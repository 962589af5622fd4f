package nfttest

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/verify/netlab"
)

// others are protocols that no rule names: DCCP, GRE, SCTP, UDP-Lite. Packets are made by raw sockets, for a kernel may
// have none of them itself.
var others = []int{33, 47, 132, 136}

// TestOtherProtocols: a box sends no other protocol to another host unless a rule admits any there, or it is open;
// and of a deny-all one none reaches a socket of this host.
func TestOtherProtocols(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	there := [2]string{o.far(), strings.Trim(o.far6(), "[]")}
	for _, b := range []struct {
		*box
		want string
	}{
		{l.box(deny()), "EPERM"}, {l.box(allow(t, there[0]+" tcp", there[0]+" udp", there[0]+" icmp", there[1]+" tcp", there[1]+" udp", there[1]+" icmp")), "EPERM"},
		{l.box(allow(t, there[0]+" any", there[1]+" any")), "sent"}, {l.box(lease.Policy{Egress: lease.Open}), "sent"},
	} {
		for _, to := range there {
			for _, protocol := range others {
				var hear int
				o.do(func() { hear = rawSocket(l, to, protocol) })
				got := strings.TrimSpace(netlab.InLeaf(t, b.FD(), "raw", to, strconv.Itoa(protocol)))
				arrived := drain(hear)
				if got != b.want || (arrived > 0) != (b.want == "sent") {
					t.Errorf("box of %s, protocol %d to %s: %s, %d arrived; want %s", policyText(b.Policy), protocol, to, got, arrived, b.want)
				}
			}
		}
	}
	closed := l.box(deny())
	for _, to := range []string{"127.0.0.1", "::1", o.near()} {
		for _, protocol := range others {
			hear := rawSocket(l, to, protocol)
			netlab.InLeaf(t, closed.FD(), "raw", to, strconv.Itoa(protocol))
			if n := drain(hear); n > 0 {
				t.Errorf("a deny-all box: protocol %d arrived at %s", protocol, to)
			}
		}
	}
}

func rawSocket(l *lab, at string, protocol int) int {
	l.Helper()
	_, family := sockaddrOf(netip.AddrPortFrom(netip.MustParseAddr(at), 0))
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	l.must(err)
	tv := unix.Timeval{Usec: 100_000}
	l.must(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv))
	l.Cleanup(func() { unix.Close(fd) })
	return fd
}

// rawChild sends one packet of a protocol, and says what came of it.
func rawChild(args []string) int {
	protocol, _ := strconv.Atoi(args[1])
	to, family := sockaddrOf(netip.AddrPortFrom(netip.MustParseAddr(args[0]), 0))
	fd := descriptor(unix.Socket(family, unix.SOCK_RAW, protocol))
	if err := unix.Sendto(fd, make([]byte, 16), 0, to); err != nil {
		fmt.Println(errnoWord(err))
		return 0
	}
	fmt.Println("sent")
	return 0
}
