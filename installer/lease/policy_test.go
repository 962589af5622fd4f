package lease

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func rule(t *testing.T, to, ports string, p Protocol) Rule {
	t.Helper()
	r, err := ParseRule(to, ports, p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRuleText(t *testing.T) {
	for _, c := range []struct {
		to, ports string
		p         Protocol
		want      string
	}{
		{"127.0.0.1", "8080", TCP, "127.0.0.1/32:8080/tcp"},
		{"10.1.2.3/8", "", Any, "10.0.0.0/8/any"},
		{"::ffff:10.0.0.1", "1-1024", UDP, "10.0.0.1/32:1-1024/udp"},
		{"2001:db8::1/32", "443", TCP, "[2001:db8::]/32:443/tcp"},
		{"0.0.0.0/0", "1-65535", TCP, "0.0.0.0/0/tcp"},
		{"::/0", "", ICMP, "[::]/0/icmp"},
		{"box:API", "3000", TCP, "box:api:3000/tcp"},
		{"box:api", "", Any, "box:api/any"},
	} {
		if got := rule(t, c.to, c.ports, c.p).String(); got != c.want {
			t.Errorf("%s %s %s: %s, want %s", c.to, c.ports, c.p, got, c.want)
		}
	}
	for _, c := range [][3]string{
		{"10.0.0.0/33", "", "tcp"}, {"x", "", "tcp"}, {"fe80::1%eth0", "", "tcp"}, {"::ffff:0:0/90", "", "tcp"},
		{"10.0.0.1", "0", "tcp"}, {"10.0.0.1", "65536", "tcp"}, {"10.0.0.1", "9-8", "tcp"}, {"10.0.0.1", "+8", "tcp"}, {"10.0.0.1", "-", "tcp"},
		{"10.0.0.1", "80", "icmp"}, {"10.0.0.1", "", "sctp"}, {"", "", "tcp"}, {"box:", "", "tcp"}, {"box:host", "", "tcp"}, {"box:a b", "", "tcp"},
	} {
		if _, err := ParseRule(c[0], c[1], Protocol(c[2])); err == nil {
			t.Errorf("%v is taken", c)
		}
	}
}

func TestCanonical(t *testing.T) {
	p, err := Policy{Egress: Rules, Rules: []Rule{
		rule(t, "10.1.0.0/16", "443", TCP), rule(t, "10.0.0.0/8", "1-1024", TCP), rule(t, "10.0.0.0/8", "", TCP), rule(t, "10.0.0.0/8", "1-65535", TCP),
		rule(t, "10.0.0.0/8", "", UDP), rule(t, "192.0.2.0/24", "", Any), rule(t, "192.0.2.7", "80", TCP),
	}}.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range p.Rules {
		got = append(got, r.String())
	}
	if want := []string{"10.0.0.0/8/tcp", "10.0.0.0/8/udp", "192.0.2.0/24/any"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if p.Ingress != FromHost {
		t.Errorf("ingress %q", p.Ingress)
	}
	for field, bad := range map[string]Policy{
		"policy.egress":        {Egress: "maybe"},
		"policy.rules":         {Egress: Open, Rules: p.Rules},
		"policy.ingress":       {Egress: Deny, Ingress: "all"},
		"policy.ingress_ports": {Egress: Deny, Ingress: FromPorts},
	} {
		var e *PolicyError
		if _, err := bad.Canonical(); !errors.As(err, &e) || e.Field != field {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := (Policy{Egress: Rules, Rules: make([]Rule, MaxRules+1)}).Canonical(); err == nil {
		t.Error("more rules than the limit are taken")
	}
}

// drawPolicy makes small, overlapping policies, so that rules meet.
func drawPolicy(t *rapid.T) Policy {
	prefix := rapid.Custom(func(t *rapid.T) netip.Prefix {
		a := netip.AddrFrom4([4]byte{10, 0, byte(rapid.IntRange(0, 3).Draw(t, "c")), byte(rapid.IntRange(0, 255).Draw(t, "d"))})
		return netip.PrefixFrom(a, rapid.IntRange(20, 32).Draw(t, "bits")).Masked()
	})
	rules := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Rule {
		r := Rule{To: prefix.Draw(t, "to"), Last: 65535, Protocol: rapid.SampledFrom([]Protocol{TCP, UDP, ICMP, Any}).Draw(t, "protocol")}
		if r.Protocol == TCP || r.Protocol == UDP {
			r.First = uint16(rapid.IntRange(0, 40).Draw(t, "first"))
			r.Last = r.First + uint16(rapid.IntRange(0, 40).Draw(t, "more"))
		}
		return r
	}), 1, 12).Draw(t, "rules")
	return Policy{Egress: Rules, Rules: rules, DenySubnets: rapid.SliceOfN(prefix, 0, 3).Draw(t, "deny")}
}

// TestCanonicalDecidesTheSame: dropping what others cover changes no decision, and the canonical form
// of a canonical form is itself.
func TestCanonicalDecidesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		c, err := p.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := c.Canonical(); err != nil || !again.Equal(c) {
			t.Fatalf("not stable: %+v, %+v", c, again)
		}
		to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(rapid.IntRange(0, 4).Draw(t, "c")), byte(rapid.IntRange(0, 255).Draw(t, "d"))}),
			uint16(rapid.IntRange(0, 90).Draw(t, "port")))
		proto := rapid.SampledFrom([]Protocol{TCP, UDP, ICMP}).Draw(t, "protocol")
		if a, b := p.Decide(to, proto, Place{}), c.Decide(to, proto, Place{}); a.Allowed != b.Allowed {
			t.Fatalf("%s %s: %+v before, %+v behind", to, proto, a, b)
		}
	})
}

func TestDecideOrder(t *testing.T) {
	own := netip.MustParseAddr("127.0.64.1")
	place := Place{Own: own,
		Answerer: func(a netip.AddrPort) bool { return a == netip.MustParseAddrPort("127.0.0.1:15353") },
		Local:    func(a netip.Addr) bool { return a.IsLoopback() },
	}
	deny := Policy{Egress: Deny}
	list := Policy{Egress: Rules, Rules: []Rule{rule(t, "127.0.0.1", "8080", TCP), rule(t, "224.0.0.0/4", "", UDP)}}
	open := Policy{Egress: Open, DenySubnets: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for _, c := range []struct {
		p       Policy
		to      string
		proto   Protocol
		allowed bool
	}{
		{deny, "192.0.2.7:443", TCP, false},
		{deny, "127.0.0.1:15353", UDP, true},
		{deny, "127.0.0.1:15353", ICMP, false},
		{deny, "127.0.64.1:3000", TCP, true},
		{deny, "127.0.64.2:3000", TCP, false},
		{deny, "127.0.0.1:8080", TCP, false},
		{list, "127.0.0.1:8080", TCP, true},
		{list, "[::ffff:127.0.0.1]:8080", TCP, true},
		{list, "127.0.0.1:8080", UDP, false},
		{list, "224.0.0.251:5353", UDP, false},
		{open, "192.0.2.7:443", TCP, true},
		{open, "10.1.2.3:443", TCP, false},
	} {
		if d := c.p.Decide(netip.MustParseAddrPort(c.to), c.proto, place); d.Allowed != c.allowed || d.Reason == "" {
			t.Errorf("%s %s %s: %+v", c.p.Egress, c.to, c.proto, d)
		}
	}
}
