package main

import (
	"fmt"
	"strings"

	"github.com/miekg/dns"
)

func ra(h dns.MsgHdr) bool { return h.RecursionDesired }
func ad(h dns.MsgHdr) bool { return h.AuthenticatedData }
func tc(h dns.MsgHdr) bool { return h.Truncated }

// headers are checks of what a reply says beside its records.
func headers() []check {
	return []check{
		{"A of a held name", udp(ask("web", dns.TypeA), address("127.0.64.1"))},
		{"A below a held name that is held", udp(ask("api.web", dns.TypeA), address("127.0.64.2"))},
		{"A of three labels", udp(ask("a.b.c", dns.TypeA), address("127.0.64.3"))},
		{"letter case comes back", udp(ask("wEb.MIN.interNAL.", dns.TypeA), address("127.0.64.1"))},
		{"letter case of a negative", udp(ask("nOBody.MIN.interNAL.", dns.TypeA), nxdomain)},
		{"id 0", udp(ask("web", dns.TypeA, id(0)), address("127.0.64.1"))},
		{"id 65535", udp(ask("web", dns.TypeA, id(65535)), address("127.0.64.1"))},
		{"RD is copied", udp(ask("web", dns.TypeA, recursion), address("127.0.64.1"), flag("RD", ra, true))},
		{"RD stays off", udp(ask("web", dns.TypeA), flag("RD", ra, false))},
		{"AD of a query is no AD of a reply", udp(ask("web", dns.TypeA, authentic), address("127.0.64.1"), flag("AD", ad, false))},
		{"CD does no harm", udp(ask("web", dns.TypeA, checking), address("127.0.64.1"))},
		{"the reserved bit is not sent back", udp(ask("web", dns.TypeA, reserved), rcode(dns.RcodeSuccess, dns.RcodeFormatError))},
		{"AA in a query is ignored", udp(ask("web", dns.TypeA, authoritative), address("127.0.64.1"))},
		{"a reply to 512 octets is whole", udp(ask("web", dns.TypeA), flag("TC", tc, false), shorter(512))},
	}
}

// lookups are checks of ordinary questions.
func lookups() []check {
	label := strings.Repeat("a", 63)
	longest := strings.Repeat(label+".", 3) + strings.Repeat("a", 47)
	return []check{
		{"AAAA is no data", udp(ask("web", dns.TypeAAAA), nodata)},
		{"HTTPS is no data", udp(ask("web", dns.TypeHTTPS), nodata)},
		{"SVCB is no data", udp(ask("web", dns.TypeSVCB), nodata)},
		{"MX is no data", udp(ask("web", dns.TypeMX), nodata)},
		{"TXT is no data", udp(ask("web", dns.TypeTXT), nodata)},
		{"CNAME is no data", udp(ask("web", dns.TypeCNAME), nodata)},
		{"DS is no data", udp(ask("web", dns.TypeDS), nodata)},
		{"SOA below the apex is no data", udp(ask("web", dns.TypeSOA), nodata)},
		{"NS below the apex is no data", udp(ask("web", dns.TypeNS), nodata)},
		{"an unknown type is no data", udp(ask("web", 65280), nodata)},
		{"every ordinary type is no data", everyType},
		{"ANY of a held name", udp(ask("web", dns.TypeANY), records(dns.TypeA))},
		{"A of an unknown name", udp(ask("nobody", dns.TypeA), nxdomain)},
		{"AAAA of an unknown name", udp(ask("nobody", dns.TypeAAAA), nxdomain)},
		{"HTTPS of an unknown name", udp(ask("nobody", dns.TypeHTTPS), nxdomain)},
		{"ANY of an unknown name", udp(ask("nobody", dns.TypeANY), nxdomain)},
		{"a name below a held name", udp(ask("x.web", dns.TypeA), nxdomain)},
		{"a deep name below a held name", udp(ask("x.y.z.web", dns.TypeA), nxdomain)},
		{"a name above a held name", udp(ask("b.c", dns.TypeA), nodata)},
		{"a name two above a held name", udp(ask("c", dns.TypeAAAA), nodata)},
		{"a name beside one above", udp(ask("x.c", dns.TypeA), nxdomain)},
		{"a held name without an address", udp(ask("stopped", dns.TypeA), nodata)},
		{"an asterisk is a letter", udp(ask("*", dns.TypeA), nxdomain)},
		{"a dot inside a label", udp(ask(`api\.web`, dns.TypeA), nxdomain)},
		{"a zero inside a label", udp(ask(`we\000b`, dns.TypeA), nxdomain)},
		{"an escaped letter is that letter", udp(ask(`\119eb`, dns.TypeA), address("127.0.64.1"))},
		{"octets above 127", udp(ask(`w\195\169b`, dns.TypeA), nxdomain)},
		{"a label of 63 octets", udp(ask(label, dns.TypeA), nxdomain)},
		{"a name of 255 octets", udp(ask(longest, dns.TypeA), nxdomain, shorter(512))},
		{"SOA of the apex", udp(ask(zoneName, dns.TypeSOA), records(dns.TypeSOA))},
		{"NS of the apex", udp(ask(zoneName, dns.TypeNS), records(dns.TypeNS))},
		{"A of the apex", udp(ask(zoneName, dns.TypeA), nodata)},
		{"HTTPS of the apex", udp(ask(zoneName, dns.TypeHTTPS), nodata)},
		{"a name outside the zone", udp(ask("example.com.", dns.TypeA), refused)},
		{"the parent of the zone", udp(ask("internal.", dns.TypeA), refused)},
		{"the root", udp(ask(".", dns.TypeNS), refused)},
		{"a zone whose name ends alike", udp(ask("web.xmin.internal.", dns.TypeA), refused)},
		{"the zone's name inside a label", udp(ask(`web\003min.internal.`, dns.TypeA), refused)},
		{"class CH", udp(ask("web", dns.TypeA, class(dns.ClassCHAOS)), rcode(dns.RcodeRefused, dns.RcodeNotAuth, dns.RcodeNotImplemented), empty)},
		{"class HS", udp(ask("web", dns.TypeA, class(dns.ClassHESIOD)), rcode(dns.RcodeRefused, dns.RcodeNotAuth, dns.RcodeNotImplemented), empty)},
		{"AXFR over UDP gives nothing", udp(ask(zoneName, dns.TypeAXFR), rcode(dns.RcodeRefused, dns.RcodeFormatError, dns.RcodeNotImplemented, dns.RcodeNotAuth), empty)},
		{"AXFR over TCP gives nothing", tcp([][]byte{ask(zoneName, dns.TypeAXFR)}, 512, rcode(dns.RcodeRefused, dns.RcodeNotAuth), empty)},
	}
}

// everyType asks for all types that are not of the protocol itself.
func everyType(addr string) error {
	for qtype := uint16(1); qtype < 260; qtype++ {
		switch {
		case qtype == dns.TypeA, qtype == dns.TypeOPT, qtype >= 128 && qtype <= 255:
			continue // of meaning to the protocol (RFC 6895 section 3.1)
		case qtype == dns.TypeNXNAME: // exists in replies only (RFC 9824)
			continue
		}
		if err := udp(ask("web", qtype), nodata)(addr); err != nil {
			return fmt.Errorf("type %d: %w", qtype, err)
		}
	}
	return nil
}
