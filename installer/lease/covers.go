package lease

import (
	"net/netip"
	"slices"
)

// Covers says whether p admits everything that o admits: nothing that lives under o has to end when p
// follows it. Both are canonical. It asks rule by rule, so it may say no where several rules of p together
// cover one of o.
func (p Policy) Covers(o Policy) bool {
	return p.coversEgress(o) && p.coversIngress(o)
}

func (p Policy) coversEgress(o Policy) bool {
	within := func(d netip.Prefix) func(netip.Prefix) bool {
		return func(old netip.Prefix) bool { return old.Bits() <= d.Bits() && old.Contains(d.Addr()) }
	}
	for _, d := range p.DenySubnets {
		if !slices.ContainsFunc(o.DenySubnets, within(d)) {
			return false
		}
	}
	if p.Egress == Open || o.Egress == Deny {
		return true
	}
	if o.Egress == Open {
		return false
	}
	for _, r := range o.Rules {
		if !slices.ContainsFunc(p.Rules, func(mine Rule) bool { return mine.covers(r) }) {
			return false
		}
	}
	return true
}

// openness of an ingress: each admits what those with lower numbers admit. FromPorts differs by its ports.
var openness = map[Ingress]int{FromNone: 0, FromHost: 1, FromPorts: 2, FromAny: 3}

func (p Policy) coversIngress(o Policy) bool {
	if openness[p.Ingress] < openness[o.Ingress] {
		return false
	}
	if p.Ingress == FromPorts {
		for _, port := range o.IngressPorts {
			if !slices.Contains(p.IngressPorts, port) {
				return false
			}
		}
	}
	for _, name := range o.IngressBoxes {
		if !slices.Contains(p.IngressBoxes, name) && !slices.Contains(p.IngressBoxes, EveryBox) {
			return false
		}
	}
	return true
}
