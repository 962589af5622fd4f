package resolverd

import (
	"net"
	"net/netip"

	"github.com/miekg/dns"
)

// Times in seconds. A name's address may be given to another box 90 seconds after its release, and
// caches add to a TTL (mDNSResponder keeps no positive answer for less than 15 seconds and no
// negative one for less than 60), so what this server says is short.
const (
	answerTTL  = 5
	soaTTL     = 5
	soaMinimum = 5
	ttlCeiling = 15

	soaRefresh = 5 // nobody transfers the zone; the fields must hold something
	soaRetry   = 5
	soaExpire  = 15
)

// The ceiling is a fact of compilation: a negative constant does not fit in an unsigned one.
const (
	_ uint = ttlCeiling - answerTTL
	_ uint = ttlCeiling - soaTTL
	_ uint = ttlCeiling - soaMinimum
)

// The builders below take the name as asked and cut the owner off its end, so that a reply holds
// no name in a letter case of its own: each is a compression pointer into the question, whatever
// the case there, and replies to the same name have the same layout.

func aRecord(asked string, addr netip.Addr) dns.RR {
	ip := addr.As4()
	return &dns.A{Hdr: header(asked, dns.TypeA, answerTTL), A: net.IP(ip[:])}
}

func nsRecord(asked string) dns.RR {
	origin := suffix(asked, Origin)
	return &dns.NS{Hdr: header(origin, dns.TypeNS, answerTTL), Ns: "minhost." + origin}
}

// soaRecord is the SOA of the zone at owner: at or above the name asked, else a cache would not
// take it. Like the zones that servers build in (RFC 6303) it names itself as its primary and
// nobody as its mailbox: any further label would be a pointer only when the question has it too.
func soaRecord(owner string, z *Zone) dns.RR {
	return &dns.SOA{
		Hdr: header(owner, dns.TypeSOA, soaTTL), Ns: owner, Mbox: ".",
		Serial: z.soaSerial(), Refresh: soaRefresh, Retry: soaRetry, Expire: soaExpire, Minttl: soaMinimum,
	}
}

func header(owner string, rrtype uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: owner, Rrtype: rrtype, Class: dns.ClassINET, Ttl: ttl}
}

// suffix cuts origin off the end of asked, in asked's letter case. The caller knows that asked is
// at or below origin; origin has no letter that presentation form would escape.
func suffix(asked, origin string) string { return asked[len(asked)-len(origin):] }
