package linux

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// AddressFree tells whether a leased address can be given: it can be bound, and no socket of an
// earlier box, or of anybody, is bound to it (sock_diag(7)).
func AddressFree(a netip.Addr) error {
	if err := Bindable(a); err != nil {
		return err
	}
	return AddressUnused(a)
}

// AddressUnused tells whether no socket is bound to an address. TCP sockets that are bound and do not listen are
// seen from kernel 6.8 on. The kernel walks whole hash tables for an answer about TCP (0.5 ms with 262,144
// buckets), so the questions are asked at the same time.
func AddressUnused(a netip.Addr) error {
	var look errgroup.Group
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		for _, p := range []struct {
			number uint8
			name   string
		}{{unix.IPPROTO_TCP, "TCP"}, {unix.IPPROTO_UDP, "UDP"}} {
			look.Go(func() error {
				all, err := sockets(family, p.number)
				if err != nil {
					return fmt.Errorf("list %s sockets: %w", p.name, err)
				}
				for _, s := range all {
					if s.Addr() == a {
						return inUse(a, p.name, s.Port())
					}
				}
				return nil
			})
		}
	}
	return look.Wait()
}

// States of sockets that sock_diag(7) is asked for: all but TIME_WAIT (6), whose sockets deliver nothing, and
// with TCP_BOUND_INACTIVE (13), which has no place among all of it before 6.8 and is ignored there.
const diagStates = 0x0fff&^(1<<6) | 1<<13

// sockets lists where sockets are bound, mapped addresses as IPv4.
func sockets(family, protocol uint8) ([]netip.AddrPort, error) {
	ask := make([]byte, 56) // struct inet_diag_req_v2
	ask[0], ask[1] = family, protocol
	binary.NativeEndian.PutUint32(ask[4:], diagStates)
	req := nl.NewNetlinkRequest(unix.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
	req.AddRawData(ask)
	answers, err := req.Execute(unix.NETLINK_INET_DIAG, 0)
	if err != nil {
		return nil, err
	}
	var out []netip.AddrPort
	for _, m := range answers { // struct inet_diag_msg
		if len(m) < 24 {
			return nil, fmt.Errorf("an answer of %d octets", len(m))
		}
		ip := netip.AddrFrom16([16]byte(m[8:24]))
		if m[0] == unix.AF_INET {
			ip = netip.AddrFrom4([4]byte(m[8:12]))
		}
		out = append(out, netip.AddrPortFrom(ip.Unmap(), binary.BigEndian.Uint16(m[4:])))
	}
	return out, nil
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
