package lease

import (
	"fmt"
	"net/netip"
)

// Decision is what the table does with a new flow of a box, and why.
type Decision struct {
	Allowed bool
	// Rule is the rule or deny subnet that decided, in its canonical text; "" when none did.
	Rule string
	// Reason is one sentence without the name of the box.
	Reason string
}

// Place is what the table knows besides the policy: where the answerer listens, and which
// destinations are local addresses of the host.
type Place struct {
	Own      netip.Addr // the box's own address; may be invalid
	Answerer func(netip.AddrPort) bool
	Local    func(netip.Addr) bool
}

// Decide answers as the table does, in the table's order (DESIGN.md 5.2): deny subnets, open,
// multicast, the answerer, rules, the box itself, refused. Port 0 asks about the address with
// no port in mind (ICMP).
func (p Policy) Decide(to netip.AddrPort, protocol Protocol, place Place) Decision {
	addr := to.Addr().Unmap()
	for _, d := range p.DenySubnets {
		if d.Contains(addr) {
			return Decision{false, d.String(), "deny_subnets has " + d.String()}
		}
	}
	if p.Egress == Open {
		return Decision{true, "", "egress is open"}
	}
	if addr.IsMulticast() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return Decision{false, "", "multicast and broadcast are refused to a confined box"}
	}
	if place.Answerer != nil && place.Answerer(netip.AddrPortFrom(addr, to.Port())) && (protocol == TCP || protocol == UDP) {
		return Decision{true, "", "it is the answerer of the zone"}
	}
	for _, r := range p.Rules {
		if r.Admits(addr, to.Port(), protocol) {
			return Decision{true, r.String(), "the rule " + r.String() + " allows it"}
		}
	}
	if addr == place.Own && place.Own.IsValid() {
		return Decision{true, "", "it is the box's own address"}
	}
	if place.Local != nil && place.Local(addr) {
		return Decision{false, "", "on this host a confined box reaches its own listeners only, and no rule names this destination"}
	}
	if p.Egress == Deny {
		return Decision{false, "", "egress is deny"}
	}
	return Decision{false, "", fmt.Sprintf("none of its %d rules allows it", len(p.Rules))}
}

// Admits says whether the rule is for this destination.
func (r Rule) Admits(addr netip.Addr, port uint16, protocol Protocol) bool {
	if !r.To.Contains(addr) || r.Protocol != Any && r.Protocol != protocol {
		return false
	}
	return r.AllPorts() || r.First <= port && port <= r.Last
}
