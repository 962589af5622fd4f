package nft

import (
	"encoding/binary"
	"net/netip"
	"strconv"
)

// What the table tells NFLOG: a prefix for each side, and so many bytes of the packet.
const (
	prefixOut = "minhost out"
	prefixIn  = "minhost in"
	snapLen   = 128
)

// Refused is one refused packet of a box.
type Refused struct {
	Number   uint16 // lease number of the sender; 0 for an unknown leaf
	Protocol string // "tcp", "udp", "icmp", or the number
	To       netip.AddrPort
	Inbound  bool // refused on the way into another box or a service of the host
}

// parsePacket reads protocol and destination from the first bytes of an IP packet. The port is 0
// where the protocol has none or the bytes end before it.
func parsePacket(b []byte) (protocol string, to netip.AddrPort, ok bool) {
	if len(b) < 20 {
		return "", netip.AddrPort{}, false
	}
	var addr netip.Addr
	var proto byte
	var transport []byte
	switch b[0] >> 4 {
	case 4:
		proto = b[9]
		addr = netip.AddrFrom4([4]byte(b[16:20]))
		if n := int(b[0]&15) * 4; binary.BigEndian.Uint16(b[6:])&0x1fff == 0 && n >= 20 && n <= len(b) {
			transport = b[n:]
		}
	case 6:
		if len(b) < 40 {
			return "", netip.AddrPort{}, false
		}
		addr = netip.AddrFrom16([16]byte(b[24:40]))
		proto, transport = skipExtensions(b[6], b[40:])
	default:
		return "", netip.AddrPort{}, false
	}
	var port uint16
	if (proto == protoTCP || proto == protoUDP) && len(transport) >= 4 {
		port = binary.BigEndian.Uint16(transport[2:])
	}
	return protocolName(proto), netip.AddrPortFrom(addr, port), true
}

// skipExtensions walks over IPv6 extension headers (RFC 8200 section 4).
func skipExtensions(next byte, b []byte) (byte, []byte) {
	for {
		var n int
		switch next {
		case 0, 43, 60: // hop-by-hop, routing, destination options
			if len(b) < 2 {
				return next, nil
			}
			n = 8 + int(b[1])*8
		case 44: // fragment
			n = 8
			if len(b) >= 4 && binary.BigEndian.Uint16(b[2:])&0xfff8 != 0 {
				return b[0], nil
			}
		default:
			return next, b
		}
		if len(b) < n {
			return next, nil
		}
		next, b = b[0], b[n:]
	}
}

func protocolName(p byte) string {
	switch p {
	case protoTCP:
		return "tcp"
	case protoUDP:
		return "udp"
	case protoICMP, protoICMPv6:
		return "icmp"
	}
	return strconv.Itoa(int(p))
}
