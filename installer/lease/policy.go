package lease

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Egress is the first word of a policy.
type Egress string

// Egress values.
const (
	Deny  Egress = "deny"
	Open  Egress = "open"
	Rules Egress = "rules"
)

// Ingress says who reaches the listeners of a box.
type Ingress string

// Ingress values. FromPorts is FromHost, and other hosts on IngressPorts.
const (
	FromHost  Ingress = "host"
	FromAny   Ingress = "any"
	FromNone  Ingress = "none"
	FromPorts Ingress = "ports"
)

// Protocol of a rule.
type Protocol string

// Protocol values. ICMP is ICMP for IPv4 destinations and ICMPv6 for IPv6 ones. Any includes
// protocols without ports.
const (
	TCP  Protocol = "tcp"
	UDP  Protocol = "udp"
	ICMP Protocol = "icmp"
	Any  Protocol = "any"
)

// MaxRules is how many rules and deny subnets together a policy may have.
const MaxRules = 1000

// MaxIngressBoxes is how many boxes a policy may let in by name.
const MaxIngressBoxes = 100

// EveryBox as one of the IngressBoxes lets in every box of the host whose own rules admit it.
const EveryBox = "*"

// Rule allows one range of destinations. Without ports, First is 0 and Last is 65535. With Box it is
// the address of that box, while it lives: To is invalid until Verdict fills it. Until is when the rule
// ends, as Term makes it; zero for one that never does.
type Rule struct {
	To          netip.Prefix
	Box         string
	First, Last uint16
	Protocol    Protocol
	Until       time.Time
}

// Policy is what a box declared, in canonical form: made by Canonical, comparable with Equal.
// Prefixes are masked, IPv4-mapped ones are IPv4.
type Policy struct {
	Egress       Egress
	Rules        []Rule
	DenySubnets  []netip.Prefix
	Ingress      Ingress
	IngressPorts []uint16
	// IngressBoxes are the names of boxes that reach its listeners as this host does.
	IngressBoxes []string
}

// PolicyError names the field of a policy that can't be used.
type PolicyError struct {
	Field, Reason string
}

func (e *PolicyError) Error() string { return e.Field + ": " + e.Reason }

// Canonical checks a policy and returns it sorted, without rules, subnets and ports that others
// cover. The error is a *PolicyError.
func (p Policy) Canonical() (Policy, error) {
	if p.Ingress == "" {
		p.Ingress = FromHost
	}
	for _, c := range []struct {
		wrong         bool
		field, reason string
	}{
		{p.Egress != Deny && p.Egress != Open && p.Egress != Rules, "policy.egress", fmt.Sprintf("%q is none of deny, open, rules", string(p.Egress))},
		{p.Egress == Rules && len(p.Rules) == 0, "policy.rules", "egress rules needs at least one rule; egress deny needs none"},
		{p.Egress != Rules && len(p.Rules) > 0, "policy.rules", fmt.Sprintf("rules contradict egress %s", string(p.Egress))},
		{len(p.Rules)+len(p.DenySubnets) > MaxRules, "policy.rules", fmt.Sprintf("%d rules and deny subnets are more than %d", len(p.Rules)+len(p.DenySubnets), MaxRules)},
		{!slices.Contains([]Ingress{FromHost, FromAny, FromNone, FromPorts}, p.Ingress), "policy.ingress", fmt.Sprintf("%q is none of host, any, none, ports", string(p.Ingress))},
		{p.Ingress == FromPorts && len(p.IngressPorts) == 0, "policy.ingress_ports", "ingress ports needs at least one port"},
		{p.Ingress != FromPorts && len(p.IngressPorts) > 0, "policy.ingress_ports", fmt.Sprintf("ports contradict ingress %s", string(p.Ingress))},
		{slices.Contains(p.IngressPorts, 0), "policy.ingress_ports", "port 0 is no port"},
		{p.Ingress == FromNone && len(p.IngressBoxes) > 0, "policy.ingress_boxes", "boxes contradict ingress none"},
		{len(p.IngressBoxes) > MaxIngressBoxes, "policy.ingress_boxes", fmt.Sprintf("%d boxes are more than %d", len(p.IngressBoxes), MaxIngressBoxes)},
	} {
		if c.wrong {
			return Policy{}, &PolicyError{c.field, c.reason}
		}
	}
	p.Rules = slices.Clone(p.Rules)
	for i, r := range p.Rules {
		if r.AllPorts() {
			p.Rules[i].First = 0 // 1-65535 and every port are one rule, not two that cover each other
		}
	}
	p.Rules = reduce(p.Rules, compareRules, Rule.covers)
	p.DenySubnets = reduce(p.DenySubnets, comparePrefixes, func(a, b netip.Prefix) bool {
		return a.Bits() <= b.Bits() && a.Contains(b.Addr())
	})
	p.IngressPorts = slices.Clone(p.IngressPorts)
	slices.Sort(p.IngressPorts)
	p.IngressPorts = slices.Compact(p.IngressPorts)
	boxes, err := canonicalBoxes(p.IngressBoxes)
	p.IngressBoxes = boxes
	return p, err
}

// canonicalBoxes checks names, which may be EveryBox.
func canonicalBoxes(in []string) ([]string, error) {
	var out []string
	for i, name := range in {
		if name == EveryBox {
			return []string{EveryBox}, nil
		}
		folded, err := ParseName(name)
		if err != nil {
			return nil, &PolicyError{fmt.Sprintf("policy.ingress_boxes[%d]", i), err.Error()}
		}
		out = append(out, folded)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// reduce sorts, and drops what another element covers. Nil stays nil.
func reduce[T comparable](in []T, compare func(a, b T) int, covers func(a, b T) bool) []T {
	sorted := slices.Clone(in)
	slices.SortFunc(sorted, compare)
	sorted = slices.Compact(sorted)
	return slices.DeleteFunc(slices.Clone(sorted), func(x T) bool {
		return slices.ContainsFunc(sorted, func(y T) bool { return x != y && covers(y, x) })
	})
}

// Equal compares canonical policies.
func (p Policy) Equal(o Policy) bool {
	return p.Egress == o.Egress && p.Ingress == o.Ingress && slices.Equal(p.Rules, o.Rules) &&
		slices.Equal(p.DenySubnets, o.DenySubnets) && slices.Equal(p.IngressPorts, o.IngressPorts) &&
		slices.Equal(p.IngressBoxes, o.IngressBoxes)
}

// Confined says whether the box is confined: its egress is not open.
func (p Policy) Confined() bool { return p.Egress != Open }
