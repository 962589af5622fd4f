package linux

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// tcpTimeWait is the state of a socket that only waits for late segments; it delivers nothing.
const tcpTimeWait = 6

// AddressFree tells whether a leased address can be given: it can be bound, and no socket of an
// earlier box, or of anybody, is bound to it (sock_diag(7)).
func AddressFree(a netip.Addr) error {
	if err := Bindable(a); err != nil {
		return err
	}
	return AddressUnused(a)
}

// AddressUnused tells whether no socket is bound to an address.
func AddressUnused(a netip.Addr) error {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		tcp, err := netlink.SocketDiagTCP(family)
		if err != nil {
			return fmt.Errorf("list TCP sockets: %w", err)
		}
		for _, s := range tcp {
			if s.State != tcpTimeWait && bound(s.ID.Source, a) {
				return inUse(a, "TCP", s.ID.SourcePort)
			}
		}
		udp, err := netlink.SocketDiagUDP(family)
		if err != nil {
			return fmt.Errorf("list UDP sockets: %w", err)
		}
		for _, s := range udp {
			if bound(s.ID.Source, a) {
				return inUse(a, "UDP", s.ID.SourcePort)
			}
		}
	}
	return nil
}

func bound(ip net.IP, a netip.Addr) bool {
	got, ok := netip.AddrFromSlice(ip)
	return ok && got.Unmap() == a
}

func inUse(a netip.Addr, kind string, port uint16) error {
	return fmt.Errorf("a %s socket is bound to %s; look: ss -anp src %s", kind, netip.AddrPortFrom(a, port), a)
}

// Local tells whether an address is this host's own.
func Local(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, x := range all {
		if n, ok := x.(*net.IPNet); ok && bound(n.IP, a) {
			return true
		}
	}
	return false
}
