package helper

import "net/netip"

// Ports of the answerer on this host (DESIGN.md section 2): the zone, and the view of it that
// confined boxes get.
const (
	zonePort = 15353
	viewPort = 15354
)

// isAnswerer says whether a destination is the answerer.
func isAnswerer(to netip.AddrPort) bool {
	v4 := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	return to.Addr() == v4 && (to.Port() == zonePort || to.Port() == viewPort) ||
		to.Addr() == netip.IPv6Loopback() && to.Port() == viewPort
}
