package sockdiag

import (
	"errors"
	"net/netip"
)

// Socket is one TCP or UDP socket.
type Socket struct {
	Protocol      uint8          // IPPROTO_TCP or IPPROTO_UDP
	Local, Remote netip.AddrPort // mapped addresses as IPv4, a wildcard is 0.0.0.0 or ::; Remote is invalid when it is not connected
	Cgroup        uint64         // where it was made; 0 when the kernel does not tell
	family        uint8
	id            [idSize]byte
}

// idSize is that of struct inet_diag_sockid (linux/inet_diag.h).
const idSize = 48

// States is a set of states: bit n for the one with number n (net/tcp_states.h, include/net/tcp_states.h in the
// kernel). A UDP socket is Established when it is connected, else Closed.
type States uint32

// States that callers name. Bound sockets that neither listen nor are connected are listed since Linux 6.8
// (TCP_BOUND_INACTIVE), and only when asked for; an older kernel ignores the bit.
const (
	TimeWait States = 1 << 6
	Closed   States = 1 << 7
	Listen   States = 1 << 10
	Bound    States = 1 << 13
	Every    States = 0x1fff | Bound
)

// ErrNotTold: this kernel does not list sockets of a protocol (CONFIG_INET_DIAG, CONFIG_INET_UDP_DIAG).
var ErrNotTold = errors.New("this kernel does not list them")

// ErrNotEnded: this kernel does not destroy sockets.
var ErrNotEnded = errors.New("this kernel does not destroy sockets (CONFIG_INET_DIAG_DESTROY)")
