package nft

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/gominimal/minhost/installer/lease"
)

// Protocol numbers that rules name.
const (
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
)

// span is an inclusive range of ports.
type span struct{ first, last uint16 }

// cell is one element of an allow set: every address, protocol and port between its ends, inclusive.
type cell struct {
	from, to              netip.Addr
	protoFirst, protoLast uint8
	ports                 span
	until                 int64 // when it ends, see ends
}

// addrs is an inclusive range of addresses of one family.
type addrs struct{ from, to netip.Addr }

// coverage is what is allowed to one address: for each protocol, disjoint sorted ranges of ports.
type coverage [256][]span

// cells turns rules into disjoint elements: no packet is in two, which the kernel's interval sets
// refuse (nft_set_pipapo, EEXIST or ENOTEMPTY). Prefixes are nested or disjoint, so a rule only
// adds what no wider prefix allows already, and addresses are never cut.
func cells(rules []lease.Rule, v6 bool) []cell {
	if anyEnds(rules) {
		return timedCells(rules, v6)
	}
	own := map[netip.Prefix]*coverage{}
	for _, r := range rules {
		p := r.To.Masked()
		if !p.IsValid() || p.Addr().Is6() != v6 {
			continue
		}
		c := own[p]
		if c == nil {
			c = new(coverage)
			own[p] = c
		}
		c.add(r, v6)
	}
	var out []cell
	for p, c := range own {
		rest := *c
		for bits := 0; bits < p.Bits(); bits++ {
			if wider, ok := own[netip.PrefixFrom(p.Addr(), bits).Masked()]; ok {
				rest.remove(wider)
			}
		}
		out = append(out, rest.cells(rangeOf(p))...)
	}
	return joinAddrs(out)
}

// add allows what the rule names. A rule for any protocol that names ports can only mean the
// protocols that have them.
func (c *coverage) add(r lease.Rule, v6 bool) {
	s := span{r.First, r.Last}
	if r.AllPorts() {
		s.first = 0 // 1 to 65535 means every port, as the policy reads it
	}
	allow := func(proto int, s span) { c[proto] = union(append(slices.Clone(c[proto]), s)) }
	all := span{0, 65535}
	switch {
	case s.first > s.last:
	case r.Protocol == lease.TCP:
		allow(protoTCP, s)
	case r.Protocol == lease.UDP:
		allow(protoUDP, s)
	case r.Protocol == lease.ICMP && v6:
		allow(protoICMPv6, all)
	case r.Protocol == lease.ICMP:
		allow(protoICMP, all)
	case r.Protocol == lease.Any && r.AllPorts():
		for p := range c {
			allow(p, all)
		}
	case r.Protocol == lease.Any:
		allow(protoTCP, s)
		allow(protoUDP, s)
	}
}

func (c *coverage) remove(wider *coverage) {
	for p := range c {
		c[p] = subtract(c[p], wider[p])
	}
}

// cells writes the coverage with as few elements as neighbouring protocols with equal ports allow.
func (c *coverage) cells(a addrs) []cell {
	var out []cell
	for p := 0; p < len(c); {
		q := p
		for q+1 < len(c) && slices.Equal(c[q+1], c[p]) {
			q++
		}
		for _, s := range c[p] {
			out = append(out, cell{a.from, a.to, uint8(p), uint8(q), s, 0})
		}
		p = q + 1
	}
	return out
}

// union sorts spans and merges those that overlap or touch.
func union(in []span) []span {
	slices.SortFunc(in, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	var out []span
	for _, s := range in {
		if n := len(out); n > 0 && int(s.first) <= int(out[n-1].last)+1 {
			out[n-1].last = max(out[n-1].last, s.last)
			continue
		}
		out = append(out, s)
	}
	return out
}

// subtract returns what of a is in no span of b; both sorted and disjoint.
func subtract(a, b []span) []span {
	var out []span
	for _, s := range a {
		first, gone := int(s.first), false
		for _, t := range b {
			if int(t.last) < first || t.first > s.last {
				continue
			}
			if int(t.first) > first {
				out = append(out, span{uint16(first), t.first - 1})
			}
			first = int(t.last) + 1
			if first > int(s.last) {
				gone = true
				break
			}
		}
		if !gone {
			out = append(out, span{uint16(first), s.last})
		}
	}
	return out
}

// joinAddrs merges cells that differ in nothing but touching addresses, and sorts.
func joinAddrs(in []cell) []cell {
	slices.SortFunc(in, func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.protoFirst, b.protoFirst), cmp.Compare(a.protoLast, b.protoLast),
			cmp.Compare(a.ports.first, b.ports.first), cmp.Compare(a.ports.last, b.ports.last), cmp.Compare(a.until, b.until), a.from.Compare(b.from))
	})
	var out []cell
	for _, c := range in {
		if n := len(out); n > 0 {
			l := &out[n-1]
			if l.protoFirst == c.protoFirst && l.protoLast == c.protoLast && l.ports == c.ports && l.until == c.until && l.to.Next() == c.from {
				l.to = c.to
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

// ranges merges prefixes of one family into disjoint address ranges.
func ranges(prefixes []netip.Prefix, v6 bool) []addrs {
	var in []addrs
	for _, p := range prefixes {
		if p.IsValid() && p.Addr().Is6() == v6 {
			in = append(in, rangeOf(p.Masked()))
		}
	}
	slices.SortFunc(in, func(a, b addrs) int { return cmp.Or(a.from.Compare(b.from), b.to.Compare(a.to)) })
	var out []addrs
	for _, a := range in {
		if n := len(out); n > 0 && (a.from.Compare(out[n-1].to) <= 0 || out[n-1].to.Next() == a.from) {
			if a.to.Compare(out[n-1].to) > 0 {
				out[n-1].to = a.to
			}
			continue
		}
		out = append(out, a)
	}
	return out
}

// rangeOf returns the first and last address of a masked prefix.
func rangeOf(p netip.Prefix) addrs {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	to, _ := netip.AddrFromSlice(b)
	return addrs{p.Addr(), to}
}
