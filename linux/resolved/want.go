package resolved

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
)

// Params are the names and numbers of DESIGN.md section 2.
type Params struct {
	Link     string         // name of our link
	Address  netip.Prefix   // of global scope: with none, 127/8 or 169.254/16 the link gets no DNS scope
	Answerer netip.AddrPort // 127.0.0.1: systemd 248 to 250 time out on any other 127 address
	Zone     string         // without dots at its ends
	Control  string         // a name of the zone that always has the address Answer
	Answer   netip.Addr
}

// DefaultParams returns those values. host.min.internal is reserved and answers 127.0.0.1.
func DefaultParams() Params {
	return Params{
		Link:     "min0",
		Address:  netip.MustParsePrefix("192.0.2.53/32"),
		Answerer: netip.MustParseAddrPort("127.0.0.1:15353"),
		Zone:     "min.internal",
		Control:  "host.min.internal",
		Answer:   netip.MustParseAddr("127.0.0.1"),
	}
}

// Server is one DNS server as resolved knows it. Index 0 is a global one.
type Server struct {
	Index int
	Addr  netip.AddrPort
}

// Domain is one domain of a link; a routing-only one is written ~domain elsewhere.
type Domain struct {
	Name        string
	RoutingOnly bool
}

// scopeDNS is the bit of ScopesMask for unicast DNS (SD_RESOLVED_DNS).
const scopeDNS = 1

// State is what resolved holds about one link. The modes are "no", "yes" and others.
type State struct {
	Scopes                                  uint64
	DefaultRoute                            bool
	Servers                                 []netip.AddrPort
	Domains                                 []Domain
	DNSOverTLS, DNSSEC, LLMNR, MulticastDNS string
}

// wanted is the state of our link once it works. Every mode is set: what is not set is inherited
// from resolved.conf, and DNSOverTLS=yes there would make the answerer unreachable.
func (p Params) wanted() State {
	return State{
		Scopes:     scopeDNS,
		Servers:    []netip.AddrPort{p.Answerer},
		Domains:    []Domain{{p.Zone, true}},
		DNSOverTLS: "no", DNSSEC: "no", LLMNR: "no", MulticastDNS: "no",
	}
}

// differs names, one line each, what is not as wanted. A server without a port is one on port 53.
func (p Params) differs(s State) []string {
	w := p.wanted()
	var d []string
	say := func(format string, args ...any) { d = append(d, fmt.Sprintf(format, args...)) }
	if s.DefaultRoute {
		say("%s is a default route for names", p.Link)
	}
	if !slices.Equal(s.Servers, w.Servers) {
		say("servers of %s are %v, not %v", p.Link, s.Servers, w.Servers)
	}
	if !slices.Equal(s.Domains, w.Domains) {
		say("domains of %s are %v, not ~%s", p.Link, s.Domains, p.Zone)
	}
	for _, m := range []struct{ name, is string }{
		{"DNSOverTLS", s.DNSOverTLS}, {"DNSSEC", s.DNSSEC}, {"LLMNR", s.LLMNR}, {"MulticastDNS", s.MulticastDNS},
	} {
		if m.is != "no" {
			say("%s of %s is %q, not no", m.name, p.Link, m.is)
		}
	}
	if s.Scopes&scopeDNS == 0 {
		say("%s has no DNS scope: nothing is sent to its server", p.Link)
	}
	return d
}

// fallbackOnly says whether the host resolves through FallbackDNS= and nothing else: a server on
// any link, ours too, would then take all other names away (measured on 252; systemd 33835). own
// is the index of our link, 0 when there is none. resolved 252 lists a loopback server of a link
// once more under index 1, so the answerer's address never counts.
func (p Params) fallbackOnly(servers, fallback []Server, own int) bool {
	others := slices.ContainsFunc(servers, func(s Server) bool {
		return (own == 0 || s.Index != own) && s.Addr != p.Answerer
	})
	return !others && len(fallback) > 0
}

// addrPort makes an address of the bytes that D-Bus carries; port 0 means 53.
func addrPort(b []byte, port uint16) (netip.AddrPort, bool) {
	a, ok := netip.AddrFromSlice(bytes.Clone(b))
	if port == 0 {
		port = 53
	}
	return netip.AddrPortFrom(a, port), ok
}
