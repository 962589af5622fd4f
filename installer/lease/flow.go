package lease

import (
	"net/netip"
	"slices"
)

// Source is who began a flow to a box.
type Source int

// Sources. Outside is another host, or a namespace of this one with an address of its own.
const (
	Outside Source = iota
	ThisHost
	OtherBox
	Self
)

// Flow is one conversation of a box that lives while its policy changes.
type Flow struct {
	Protocol Protocol // TCP, UDP, ICMP; Any for the others
	// To is where it was first sent: before any NAT. Of an inbound flow it is the end in the box.
	To netip.AddrPort
	// Via is where NAT sends it; equal to To without NAT.
	Via netip.AddrPort
	// Inbound flows were begun by somebody else, and admitted; From says who, and Sender is its lease number
	// when From is OtherBox. Of an outbound flow From is Self when both ends are in the box.
	Inbound bool
	From    Source
	Sender  uint16
}

// Admits says whether the verdict lets a flow live: the table's answer if it began now, with the
// original destination. A flow of a box to itself ends only when its address is denied.
func (v Verdict) Admits(f Flow, place Place) bool {
	for _, d := range v.Policy.DenySubnets {
		if !f.Inbound && (d.Contains(f.To.Addr().Unmap()) || d.Contains(f.Via.Addr().Unmap())) {
			return false
		}
	}
	if f.From == Self {
		return true
	}
	if f.Inbound {
		return v.DecideIngress(f.From, f.Sender, f.To.Port(), f.Protocol).Allowed
	}
	// A lookup that is redirected goes to the answerer, whatever server was asked.
	if place.Answerer != nil && f.Via != f.To && place.Answerer(f.Via) {
		return true
	}
	// Self was asked above: what listens on the box's own address here is somebody else's.
	place.Own = netip.Addr{}
	return v.Policy.Decide(f.To, f.Protocol, place).Allowed
}

// DecideIngress answers as the table does for a new flow to a listener of the box. sender is a lease
// number when from is OtherBox.
func (v Verdict) DecideIngress(from Source, sender, port uint16, protocol Protocol) Decision {
	p := v.Policy
	if from == Self {
		return Decision{true, "", "it is the box itself"}
	}
	if p.Ingress == FromNone {
		return Decision{false, "", "its ingress is none"}
	}
	if p.Ingress == FromAny {
		return Decision{true, "", "its ingress is any"}
	}
	if p.Ingress == FromPorts && (protocol == TCP || protocol == UDP) {
		for _, n := range p.IngressPorts {
			if n == port {
				return Decision{true, "", "its ingress opens the port"}
			}
		}
	}
	if from == ThisHost {
		return Decision{true, "", "its ingress lets this host in"}
	}
	if from == OtherBox && v.FromEveryBox {
		return Decision{true, "", "its ingress lets every box in"}
	}
	if from == OtherBox && slices.Contains(v.From, sender) {
		return Decision{true, "", "its ingress lets that box in"}
	}
	return Decision{false, "", "its ingress does not allow it"}
}
