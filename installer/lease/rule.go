package lease

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// boxPrefix begins a destination that is a box.
const boxPrefix = "box:"

// ParseRule reads the parts of a rule as the API has them: an address, a CIDR or "box:" and a name, a
// port or range ("" for every port), a protocol.
func ParseRule(to, ports string, protocol Protocol) (Rule, error) {
	r := Rule{Last: 65535, Protocol: protocol}
	var err error
	if name, ok := strings.CutPrefix(to, boxPrefix); ok {
		r.Box, err = ParseName(name)
	} else {
		r.To, err = ParsePrefix(to)
	}
	if err != nil {
		return Rule{}, err
	}
	switch protocol {
	case TCP, UDP:
	case ICMP, Any:
		if ports != "" {
			return Rule{}, fmt.Errorf("ports need protocol tcp or udp, not %s", protocol)
		}
	default:
		return Rule{}, fmt.Errorf("protocol %q is none of tcp, udp, icmp, any", string(protocol))
	}
	if ports == "" {
		return r, nil
	}
	from, until, isRange := strings.Cut(ports, "-")
	if r.First, err = parsePort(from); err != nil {
		return Rule{}, err
	}
	r.Last = r.First
	if isRange {
		if r.Last, err = parsePort(until); err != nil {
			return Rule{}, err
		}
	}
	if r.Last < r.First {
		return Rule{}, fmt.Errorf("port range %s ends before it begins", ports)
	}
	return r, nil
}

func parsePort(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s[0] == '+' {
		return 0, fmt.Errorf("port %q is not a number from 1 to 65535", s)
	}
	return uint16(n), nil
}

// ParsePrefix reads an address or a CIDR, masks it, and turns an IPv4-mapped one into IPv4.
func ParsePrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		a, aerr := netip.ParseAddr(s)
		if aerr != nil {
			return netip.Prefix{}, fmt.Errorf("%q is neither an address nor a CIDR", s)
		}
		p = netip.PrefixFrom(a.WithZone(""), a.BitLen())
		if a.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q has a zone; rules have none", s)
		}
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("%q mixes IPv4-mapped and IPv6 addresses", s)
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// AllPorts says whether the rule is for every port.
func (r Rule) AllPorts() bool { return r.First <= 1 && r.Last == 65535 }

// Ports returns the ports as ParseRule takes them.
func (r Rule) Ports() string {
	switch {
	case r.AllPorts():
		return ""
	case r.First == r.Last:
		return strconv.Itoa(int(r.First))
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Target returns the destination as ParseRule takes it.
func (r Rule) Target() string {
	if r.Box != "" {
		return boxPrefix + r.Box
	}
	return r.To.String()
}

// String returns the form that minhost run --allow takes: 127.0.0.1/32:8080/tcp,
// [2001:db8::]/32:443/tcp, 10.0.0.0/8/any, box:api:3000/tcp, 10.0.0.0/8/any@2026-01-02T15:04:05Z.
func (r Rule) String() string {
	to := r.Target()
	if r.Box == "" && r.To.Addr().Is6() {
		to = fmt.Sprintf("[%s]/%d", r.To.Addr(), r.To.Bits())
	}
	if p := r.Ports(); p != "" {
		to += ":" + p
	}
	to += "/" + string(r.Protocol)
	if !r.Until.IsZero() {
		to += "@" + r.Ends()
	}
	return to
}

// covers says whether every packet that o admits is admitted by r, for as long.
func (r Rule) covers(o Rule) bool {
	return (r.Protocol == o.Protocol || r.Protocol == Any) && r.Box == o.Box && r.outlasts(o) &&
		(r.Box != "" || r.To.Bits() <= o.To.Bits() && r.To.Contains(o.To.Addr())) &&
		(r.AllPorts() || r.First <= o.First && r.Last >= o.Last)
}

func compareRules(a, b Rule) int {
	return cmp.Or(cmp.Compare(a.Box, b.Box), comparePrefixes(a.To, b.To), cmp.Compare(a.Protocol, b.Protocol),
		cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last), a.Until.Compare(b.Until))
}

func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}
