package linux

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
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
// seen from kernel 6.8 on.
func AddressUnused(a netip.Addr) error {
	for _, q := range []struct {
		name    string
		kind    int
		message []byte
	}{
		{"TCP", tcpDiagByType, everyTCP()},
		{"UDP", unix.SOCK_DIAG_BY_FAMILY, everyUDP(unix.AF_INET)},
		{"UDP", unix.SOCK_DIAG_BY_FAMILY, everyUDP(unix.AF_INET6)},
	} {
		all, err := sockets(q.kind, q.message)
		if err != nil {
			return fmt.Errorf("list %s sockets: %w", q.name, err)
		}
		for _, s := range all {
			if s.Addr() == a {
				return inUse(a, q.name, s.Port())
			}
		}
	}
	return nil
}

// States of sockets that sock_diag(7) is asked for: all but TIME_WAIT (6), whose sockets deliver nothing, and
// with TCP_BOUND_INACTIVE (13), which has no place among all of it before 6.8 and is ignored there.
const diagStates = 0x0fff&^(1<<6) | 1<<13

// tcpDiagByType is TCPDIAG_GETSOCK, by which TCP sockets were asked for before there were families (linux/inet_diag.h).
const tcpDiagByType = 18

// everyTCP asks in the older way, struct inet_diag_req, since that means both families: the kernel walks whole hash
// tables for an answer about TCP, 0.3 ms with 262,144 buckets, and asked by family it does so for each.
func everyTCP() []byte {
	ask := make([]byte, 60)
	binary.NativeEndian.PutUint32(ask[52:], diagStates)
	return ask
}

// everyUDP asks by family, struct inet_diag_req_v2.
func everyUDP(family uint8) []byte {
	ask := make([]byte, 56)
	ask[0], ask[1] = family, unix.IPPROTO_UDP
	binary.NativeEndian.PutUint32(ask[4:], diagStates)
	return ask
}

// sockets lists where sockets are bound, mapped addresses as IPv4.
func sockets(kind int, ask []byte) ([]netip.AddrPort, error) {
	req := nl.NewNetlinkRequest(kind, unix.NLM_F_DUMP)
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

func inUse(a netip.Addr, kind string, port uint16) error {
	return fmt.Errorf("a %s socket is bound to %s; look: ss -anp src %s", kind, netip.AddrPortFrom(a, port), a)
}
