package lease

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawBothWays is a policy with an ingress, of any egress.
func drawBothWays(t *rapid.T, label string) Policy {
	p := drawPolicy(t)
	p.Egress = rapid.SampledFrom([]Egress{Deny, Open, Rules}).Draw(t, label)
	if p.Egress != Rules {
		p.Rules = nil
	}
	p.Ingress = rapid.SampledFrom([]Ingress{FromHost, FromAny, FromNone, FromPorts}).Draw(t, label)
	if p.Ingress == FromPorts {
		p.IngressPorts = rapid.SliceOfN(rapid.Uint16Range(1, 4), 1, 3).Draw(t, label)
	}
	if p.Ingress != FromNone {
		p.IngressBoxes = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", EveryBox}), 0, 2).Draw(t, label)
	}
	p, err := p.Canonical()
	if err != nil {
		t.Skip(err)
	}
	return p
}

func verdictOf(p Policy) Verdict {
	return Lease{Policy: p}.Verdict(1, func(name string) (uint16, netip.Addr, bool) {
		return map[string]uint16{"a": 1, "b": 2}[name], netip.Addr{}, true
	})
}

// Under a policy that covers another no flow of that ends.
func TestCoversEndsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := drawBothWays(t, "before")
		after := drawBothWays(t, "after")
		if rapid.Bool().Draw(t, "wider") { // two random policies seldom cover one another
			after = before
			after.Rules = append(slices.Clone(before.Rules), drawPolicy(t).Rules...)
			if before.Egress != Rules {
				after.Rules = nil
			}
			after.DenySubnets = before.DenySubnets[:len(before.DenySubnets)/2]
		}
		if !after.Covers(before) {
			return
		}
		f := Flow{Protocol: rapid.SampledFrom([]Protocol{TCP, UDP, ICMP, Any}).Draw(t, "protocol"), Inbound: rapid.Bool().Draw(t, "inbound"),
			From: rapid.SampledFrom([]Source{Outside, ThisHost, OtherBox, Self}).Draw(t, "from"), Sender: rapid.Uint16Range(1, 3).Draw(t, "sender"),
			To: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(rapid.IntRange(0, 4).Draw(t, "c")), byte(rapid.IntRange(0, 255).Draw(t, "d"))}),
				uint16(rapid.IntRange(0, 90).Draw(t, "port")))}
		f.Via = f.To
		if verdictOf(before).Admits(f, Place{}) && !verdictOf(after).Admits(f, Place{}) {
			t.Fatalf("%+v lives under %+v and not under %+v", f, before, after)
		}
	})
}

func TestCovers(t *testing.T) {
	ten, sub := rule(t, "10.0.0.0/8", "80", TCP), rule(t, "10.1.0.0/16", "80", TCP)
	timed := sub
	timed.Until = time.Unix(1000, 0)
	list := func(r ...Rule) Policy { return Policy{Egress: Rules, Rules: r, Ingress: FromHost} }
	denies := func(p Policy, s ...string) Policy {
		for _, d := range s {
			p.DenySubnets = append(p.DenySubnets, netip.MustParsePrefix(d))
		}
		return p
	}
	from := func(i Ingress, ports []uint16, boxes ...string) Policy {
		return Policy{Egress: Deny, Ingress: i, IngressPorts: ports, IngressBoxes: boxes}
	}
	open, deny := Policy{Egress: Open, Ingress: FromHost}, Policy{Egress: Deny, Ingress: FromHost}
	for name, c := range map[string]struct {
		wide, narrow Policy
		back         bool // the narrow one covers the wide one too
	}{
		"the same":           {list(sub), list(sub), true},
		"a wider rule":       {list(ten), list(sub), false},
		"one more":           {list(ten, rule(t, "192.0.2.1", "", Any)), list(ten), false},
		"one that lasts":     {list(sub), list(timed), false},
		"open":               {open, list(ten), false},
		"a list after deny":  {list(ten), deny, false},
		"fewer denied":       {denies(open, "10.0.0.0/8"), denies(open, "10.0.0.0/8", "192.0.2.0/24"), false},
		"less of one denied": {denies(open, "10.1.0.0/16"), denies(open, "10.0.0.0/8"), false},
		"any":                {from(FromAny, nil), from(FromPorts, []uint16{80}), false},
		"more ports":         {from(FromPorts, []uint16{80, 81}), from(FromPorts, []uint16{81}), false},
		"this host":          {from(FromHost, nil), from(FromNone, nil), false},
		"one box more":       {from(FromHost, nil, "a", "b"), from(FromHost, nil, "b"), false},
		"every box":          {from(FromHost, nil, EveryBox), from(FromHost, nil, "b"), false},
	} {
		if !c.wide.Covers(c.narrow) || c.narrow.Covers(c.wide) != c.back {
			t.Errorf("%s: %v and back %v, want true and %v", name, c.wide.Covers(c.narrow), c.narrow.Covers(c.wide), c.back)
		}
	}
}
