package lease

import "net/netip"

// Home is what the kernel must hold for a box on the host's network besides its verdict: whose localhost it
// has (DESIGN.md 5.4).
type Home struct {
	// Leaf is the id of the box's cgroup.
	Leaf uint64
	// Address is the box's own loopback address, which nobody else may bind.
	Address netip.Addr
	// Own: what it binds on localhost or a wildcard is bound on Address, and localhost is its own first.
	Own bool
	// UDPWildcards: a UDP wildcard with a fixed port is bound on Address too. Not where the box's egress
	// admits UDP to elsewhere: from a loopback address nothing could be sent there.
	UDPWildcards bool
	// Open: other interfaces reach every port of the box, or those of OpenPorts: wildcards stay there.
	Open      bool
	OpenPorts []uint16
}

// Home returns what the programs must know of this lease with this leaf. Without an address there is none; a
// box with a network of its own has its address guarded.
func (l Lease) Home(leaf uint64) (Home, bool) {
	return Home{
		Leaf: leaf, Address: l.Address, Own: l.OwnLocalhost && l.Mode == ModeHost, UDPWildcards: !l.Policy.udpElsewhere(),
		Open: l.Policy.Ingress == FromAny, OpenPorts: l.Policy.IngressPorts,
	}, l.Address.IsValid()
}

// udpElsewhere says whether the box may send UDP to other hosts.
func (p Policy) udpElsewhere() bool {
	if p.Egress == Open {
		return true
	}
	for _, r := range p.Rules {
		if (r.Protocol == UDP || r.Protocol == Any) && r.Box == "" && !r.To.Addr().IsLoopback() {
			return true
		}
	}
	return false
}

// Unpublished is the address of a box that has a localhost of its own and no name: of 127.65.0.0/16, by its
// number. It is in no zone.
func Unpublished(number uint16) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 65, byte(number >> 8), byte(number)})
}

// Leasable says whether a box may have this address.
func Leasable(a netip.Addr) bool {
	if InRange(a) {
		return true
	}
	if !a.Is4() {
		return false
	}
	four := a.As4()
	return four[0] == 127 && four[1] == 65 && a != Unpublished(0)
}
