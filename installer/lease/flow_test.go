package lease

import (
	"net/netip"
	"testing"
)

var place = Place{
	Own:      netip.MustParseAddr("127.0.64.1"),
	Answerer: func(a netip.AddrPort) bool { return a == netip.MustParseAddrPort("127.0.0.1:15354") },
	Local:    func(a netip.Addr) bool { return a.IsLoopback() },
}

// A live flow survives a new policy exactly when the table would let it begin now.
func TestFlowsThatSurvive(t *testing.T) {
	deny, open := Policy{Egress: Deny, Ingress: FromHost}, Policy{Egress: Open, Ingress: FromHost}
	listed := Policy{Egress: Rules, Ingress: FromHost, Rules: []Rule{rule(t, "192.0.2.0/24", "443", TCP), rule(t, "127.0.0.1", "5432", TCP)}}
	with := func(p Policy, f func(*Policy)) Policy { f(&p); return p }
	denied := func(p *Policy) { p.DenySubnets = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/28")} }
	out := func(to string) Flow {
		a := netip.MustParseAddrPort(to)
		return Flow{Protocol: TCP, To: a, Via: a}
	}
	nat := func(to, via string) Flow {
		return Flow{Protocol: TCP, To: netip.MustParseAddrPort(to), Via: netip.MustParseAddrPort(via)}
	}
	self := func(f Flow) Flow { f.From = Self; return f }
	in := func(from Source, port uint16) Flow {
		a := netip.AddrPortFrom(netip.MustParseAddr("127.0.64.1"), port)
		return Flow{Protocol: TCP, To: a, Via: a, Inbound: true, From: from, Sender: 9}
	}
	for _, c := range []struct {
		what   string
		policy Policy
		flow   Flow
		want   bool
	}{
		{"deny, outside", deny, out("192.0.2.7:443"), false},
		{"deny, itself", deny, self(out("127.0.0.1:3000")), true},
		{"deny, its own address but not itself", deny, out("127.0.64.1:3000"), false},
		{"deny, a redirected lookup", deny, nat("192.0.2.53:53", "127.0.0.1:15354"), true},
		{"deny, a lookup from before it was confined", deny, out("192.0.2.53:53"), false},
		{"open", open, out("192.0.2.7:443"), true},
		{"open, denied", with(open, denied), out("192.0.2.7:443"), false},
		{"open, denied behind NAT", with(open, denied), nat("198.51.100.1:443", "192.0.2.7:443"), false},
		{"open, denied before NAT", with(open, denied), nat("192.0.2.7:443", "198.51.100.1:443"), false},
		{"listed", listed, out("192.0.2.7:443"), true},
		{"listed, another port", listed, out("192.0.2.7:80"), false},
		{"listed, judged by where it was sent", listed, nat("192.0.2.7:443", "198.51.100.1:80"), true},
		{"listed, a service of this host", listed, out("127.0.0.1:5432"), true},
		{"listed, another service", listed, out("127.0.0.1:5433"), false},
		{"denied, itself", with(deny, func(p *Policy) { p.DenySubnets = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }), self(out("127.0.0.1:1")), false},

		{"ingress host, this host", deny, in(ThisHost, 80), true},
		{"ingress host, another host", deny, in(Outside, 80), false},
		{"ingress host, another box", deny, in(OtherBox, 80), false},
		{"ingress none, this host", with(deny, func(p *Policy) { p.Ingress = FromNone }), in(ThisHost, 80), false},
		{"ingress none, itself", with(deny, func(p *Policy) { p.Ingress = FromNone }), in(Self, 80), true},
		{"ingress any, another box", with(deny, func(p *Policy) { p.Ingress = FromAny }), in(OtherBox, 80), true},
		{"ingress any, a denied peer", with(with(deny, func(p *Policy) { p.Ingress = FromAny }), denied), in(Outside, 80), true},
		{"ingress ports, that port", with(deny, func(p *Policy) { p.Ingress, p.IngressPorts = FromPorts, []uint16{80} }), in(Outside, 80), true},
		{"ingress ports, another", with(deny, func(p *Policy) { p.Ingress, p.IngressPorts = FromPorts, []uint16{80} }), in(Outside, 81), false},
		{"ingress ports, this host", with(deny, func(p *Policy) { p.Ingress, p.IngressPorts = FromPorts, []uint16{80} }), in(ThisHost, 81), true},
	} {
		if got := (Verdict{Policy: c.policy}).Admits(c.flow, place); got != c.want {
			t.Errorf("%s: lives %t, want %t", c.what, got, c.want)
		}
	}
}
