package lease

import (
	"net/netip"
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

// Rule allows one range of destinations. Without ports, First is 0 and Last is 65535.
type Rule struct {
	To          netip.Prefix
	First, Last uint16
	Protocol    Protocol
}

// Policy is what a box declared, in canonical form: made by NewPolicy, comparable with Equal.
// Prefixes are masked, IPv4-mapped ones are IPv4.
type Policy struct {
	Egress       Egress
	Rules        []Rule
	DenySubnets  []netip.Prefix
	Ingress      Ingress
	IngressPorts []uint16
}
