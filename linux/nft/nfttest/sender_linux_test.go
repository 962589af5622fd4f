package nfttest

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// TestSenderIsOnesOwn: a box that may send to a service of the host sends to it from no other box's address: all of
// 127.0.0.0/8 is local, so control data may name any of it, and ping sockets may be bound to it.
func TestSenderIsOnesOwn(t *testing.T) {
	l := newLab(t)
	l.belt()
	l.allowPing()
	here := udp(t, 8002)
	open, victim := l.box(openEgress()), l.box(openEgress())
	listed := l.box(allow(t, "127.0.0.1 any"))
	to := "127.0.0.1:8002"
	for _, b := range []*box{open, listed} {
		for _, family := range []string{"udp4", "udp6"} {
			for _, from := range []string{victim.Address.String(), "127.0.64.254", "127.65.7.7"} {
				if got := netlab.InLeaf(t, b.FD(), "sendas", family, from, to); got != "EPERM\n" {
					t.Errorf("box %d, %s from %s: %s", b.Number, family, from, got)
				}
			}
			for _, from := range []string{b.Address.String(), "127.0.0.1"} {
				if got := netlab.InLeaf(t, b.FD(), "sendas", family, from, to); got != "ok\n" {
					t.Errorf("box %d, %s from %s: %s", b.Number, family, from, got)
				}
			}
		}
		if got := netlab.InLeaf(t, b.FD(), "pingas", victim.Address.String()); got != "EPERM\n" {
			t.Errorf("box %d pings from %s: %s", b.Number, victim.Address, got)
		}
	}
	if n := drain(here); n != 8 {
		t.Errorf("%d datagrams arrived, want the 8 of boxes by their own addresses", n)
	}
	// To themselves, which no rule has to admit, it is the same.
	if got := netlab.InLeaf(t, l.box(deny()).FD(), "sendas", "udp4", victim.Address.String(), "127.0.0.1:8004"); got != "EPERM\n" {
		t.Error(got)
	}
}

// sendAsChild sends an octet from an address that it is not bound to, and prints what came of it.
func sendAsChild(args []string) int {
	from, to := netip.MustParseAddr(args[1]), netip.MustParseAddrPort(args[2])
	family, level, kind := unix.AF_INET, unix.SOL_IP, unix.IP_PKTINFO
	info := make([]byte, unix.SizeofInet4Pktinfo)
	copy(info[4:], from.AsSlice())
	address := unix.Sockaddr(&unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	if strings.HasSuffix(args[0], "6") {
		family, level, kind = unix.AF_INET6, unix.SOL_IPV6, unix.IPV6_PKTINFO
		mapped := netip.AddrFrom16(from.As16())
		info = make([]byte, unix.SizeofInet6Pktinfo)
		copy(info, mapped.AsSlice())
		address = &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	}
	fd := descriptor(unix.Socket(family, unix.SOCK_DGRAM, 0))
	said(unix.Sendmsg(fd, []byte("x"), control(level, kind, info), address, 0))
	return 0
}

// pingAsChild sends an echo request to 127.0.0.1 from a ping socket that is bound to an address.
func pingAsChild(args []string) int {
	fd := descriptor(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP))
	err := unix.Bind(fd, &unix.SockaddrInet4{Addr: netip.MustParseAddr(args[0]).As4()})
	if err != nil {
		fmt.Fprintln(os.Stderr, "bind:", err)
		return 1
	}
	said(unix.Sendto(fd, []byte{8, 0, 0, 0, 0, 0, 0, 0}, 0, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	return 0
}

func said(err error) {
	if err == nil {
		fmt.Println("ok")
		return
	}
	fmt.Println(unix.ErrnoName(err.(unix.Errno)))
}

// control is one control message.
func control(level, kind int, data []byte) []byte {
	b := make([]byte, unix.CmsgSpace(len(data)))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = int32(level), int32(kind)
	h.SetLen(unix.CmsgLen(len(data)))
	copy(b[unix.CmsgLen(0):], data)
	return b
}
