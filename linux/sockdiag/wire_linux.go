package sockdiag

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Messages and attributes (linux/inet_diag.h, linux/sock_diag.h).
const (
	oldRequest  = 18 // TCPDIAG_GETSOCK
	byFamily    = 20 // SOCK_DIAG_BY_FAMILY
	destroy     = 21 // SOCK_DESTROY
	attrCgroup  = 21 // INET_DIAG_CGROUP_ID, Linux 5.9
	messageSize = 72 // struct inet_diag_msg
)

// request is struct inet_diag_req_v2.
func request(family, protocol uint8, states States, id [idSize]byte) []byte {
	b := binary.NativeEndian.AppendUint32([]byte{family, protocol, 0, 0}, uint32(states))
	return append(b, id[:]...)
}

// everyTCP is struct inet_diag_req: the older way to ask.
func everyTCP(states States) []byte {
	b := binary.NativeEndian.AppendUint32(make([]byte, 4+idSize), uint32(states))
	return binary.NativeEndian.AppendUint32(b, 0) // idiag_dbs
}

// parse reads struct inet_diag_msg and its attributes.
func parse(b []byte, protocol uint8) (Socket, error) {
	if len(b) < messageSize {
		return Socket{}, fmt.Errorf("an answer of %d octets", len(b))
	}
	s := Socket{Protocol: protocol, family: b[0], id: [idSize]byte(b[4:])}
	s.Local = endpoint(b[0], s.id[4:20], binary.BigEndian.Uint16(s.id[0:]))
	if remote := endpoint(b[0], s.id[20:36], binary.BigEndian.Uint16(s.id[2:])); remote.Port() != 0 {
		s.Remote = remote
	}
	ad, err := netlink.NewAttributeDecoder(b[messageSize:])
	if err != nil {
		return Socket{}, fmt.Errorf("attributes: %w", err)
	}
	for ad.Next() {
		if ad.Type() == attrCgroup {
			s.Cgroup = ad.Uint64()
		}
	}
	if err := ad.Err(); err != nil {
		return Socket{}, fmt.Errorf("attributes: %w", err)
	}
	return s, nil
}

func endpoint(family uint8, addr []byte, port uint16) netip.AddrPort {
	if family == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(addr)), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(addr)).Unmap(), port)
}
