package nft

import (
	"net/netip"
	"testing"

	"github.com/gominimal/minhost/installer/lease"
)

// A policy that only one leaf has is changed element by element; one that others have, or that denies other
// subnets than before, gets elements of its own. Denied subnets are sent before all else.
func TestChangedPolicy(t *testing.T) {
	list := func(denied string, ports ...uint16) lease.Policy {
		p := lease.Policy{Egress: lease.Rules}
		for _, port := range ports {
			p.Rules = append(p.Rules, lease.Rule{To: netip.MustParsePrefix("192.0.2.1/32"), First: port, Last: port, Protocol: lease.TCP})
		}
		if denied != "" {
			p.DenySubnets = []netip.Prefix{netip.MustParsePrefix(denied)}
		}
		return p
	}
	verdict := func(leaf uint64, p lease.Policy) lease.Verdict {
		return lease.Verdict{Leaf: leaf, Number: uint16(leaf), Policy: p}
	}
	for name, c := range map[string]struct {
		others         []lease.Policy
		old, new       lease.Policy
		del, add, deny int // elements of policies
	}{
		"one more":                  {nil, list("", 80, 90), list("", 80, 90, 100), 0, 1, 0},
		"one less":                  {nil, list("", 80, 90), list("", 90), 1, 0, 0},
		"another box keeps the old": {[]lease.Policy{list("", 80)}, list("", 80), list("", 80, 90), 0, 2, 0},
		"another box has the new":   {[]lease.Policy{list("", 80, 90)}, list("", 80), list("", 80, 90), 1, 0, 0},
		"subnets denied":            {nil, list("", 80), list("10.0.0.0/8", 80), 1, 1, 1},
		"other subnets denied":      {nil, list("10.1.0.0/16", 80), list("10.0.0.0/8", 80), 2, 1, 1},
	} {
		s := newState(DefaultMarks())
		for i, p := range c.others {
			s = s.with(verdict(uint64(i+10), p))
		}
		s = s.with(verdict(1, c.old))
		next := s.with(verdict(1, c.new))
		del, add := change(s, next, 1)
		denied, rest := deniedFirst(add)
		if d, a := ofPolicies(del), ofPolicies(rest); d != c.del || a != c.add || len(denied) != c.deny {
			t.Errorf("%s: %d go, %d come, %d denied before; want %d, %d, %d", name, d, a, len(denied), c.del, c.add, c.deny)
		}
		if len(next.ids) != len(c.others)+1 && name != "another box has the new" {
			t.Errorf("%s: ids %v", name, next.ids)
		}
	}
}

func ofPolicies(all []setElement) (n int) {
	for _, e := range all {
		if e.set == setAllow4 || e.set == setDeny4 {
			n++
		}
	}
	return n
}
