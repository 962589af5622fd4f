package lease

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Range of leased addresses: 127.0.64.1 to 127.0.64.253. 127.0.64.254 is the host as a box sees it.
var (
	first = netip.AddrFrom4([4]byte{127, 0, 64, 1})
	last  = netip.AddrFrom4([4]byte{127, 0, 64, 253})
)

// HostAddress is the host as boxes see it; never leased.
func HostAddress() netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 64, 254}) }

// InRange says whether an address may be leased.
func InRange(a netip.Addr) bool { return !a.Less(first) && !last.Less(a) }

// ErrRangeFull is returned by Pick when every address is held or in use.
var ErrRangeFull = errors.New("no address of 127.0.64.1 to 127.0.64.253 is free")

// Pick chooses the address of a new box: one that was never given first, then the least recently
// released one. So an address comes back within the 60 s that browsers cache a name only when
// there is no other. usable is asked before an address is given: it fails when a socket is
// still bound to it, or when it can't be bound at all; the first such cause is in the error when
// nothing is left.
func Pick(held map[netip.Addr]bool, released map[netip.Addr]time.Time, usable func(netip.Addr) error) (netip.Addr, error) {
	var cause error
	tried := map[netip.Addr]bool{}
	for {
		best, found := netip.Addr{}, false
		for a := first; !last.Less(a); a = a.Next() {
			if held[a] || tried[a] {
				continue
			}
			if !found || released[a].Before(released[best]) {
				best, found = a, true
			}
		}
		if !found {
			break
		}
		err := usable(best)
		if err == nil {
			return best, nil
		}
		if cause == nil {
			cause = err
		}
		tried[best] = true
	}
	if cause != nil {
		return netip.Addr{}, fmt.Errorf("%w: %w", ErrRangeFull, cause)
	}
	return netip.Addr{}, ErrRangeFull
}
