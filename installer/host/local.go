package host

import (
	"net"
	"net/netip"
)

// Local tells whether an address is this host's own. In doubt it is not.
func Local(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, x := range all {
		if n, ok := x.(*net.IPNet); ok {
			if got, ok := netip.AddrFromSlice(n.IP); ok && got.Unmap() == a {
				return true
			}
		}
	}
	return false
}
