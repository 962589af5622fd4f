package resolverd

import "github.com/miekg/dns"

// kind is what a name is to a view. It decides everything of an answer but the records' owner.
type kind uint8

const (
	outside   kind = iota // refused
	apex                  // of the zone
	inside                // held, reserved, or above a held name
	absent                // in the zone, no such name
	discovery             // _dns.resolver.arpa
	notHere               // outside the zone, to a box: no such name
	above                 // outside the zone, to a box: no data, because a name that is answered is below it
)

// The wire names that are known without a lookup, folded.
const (
	originKey    = "\x03min\x08internal\x00"
	discoveryKey = "\x04_dns\x08resolver\x04arpa\x00"
)

// resolution is the semantic half of a reply.
type resolution struct {
	rcode         int
	authoritative bool
	answer, ns    []dns.RR
}

// resolve finds what the zone says to a well-formed question of class IN and opcode QUERY.
func resolve(q query, z *Zone, v View) resolution {
	key, asked := fold(q.name), q.asked
	transfer := q.qtype == dns.TypeAXFR || q.qtype == dns.TypeIXFR
	k := classify(key, z, v)
	switch {
	case transfer, k == outside:
		return resolution{rcode: dns.RcodeRefused}
	case k == apex:
		return resolveApex(q.qtype, asked, z)
	case k == inside:
		addr, _ := z.lookup(key[:len(key)-len(originKey)], v)
		if addr.IsValid() && (q.qtype == dns.TypeA || q.qtype == dns.TypeANY) {
			return resolution{authoritative: true, answer: []dns.RR{aRecord(asked, addr)}}
		}
		return negative(dns.RcodeSuccess, soaRecord(suffix(asked, Origin), z))
	case k == absent:
		return negative(dns.RcodeNameError, soaRecord(suffix(asked, Origin), z))
	case k == discovery:
		return negative(dns.RcodeSuccess, soaRecord(suffix(asked, "resolver.arpa."), z))
	case k == above:
		return negative(dns.RcodeSuccess, soaRecord(".", z))
	default: // notHere
		return negative(dns.RcodeNameError, soaRecord(".", z))
	}
}

// resolveApex answers at the zone's own name. ANY gets one set of records, as RFC 8482 section 4.1
// allows, here and at every other name.
func resolveApex(qtype uint16, asked string, z *Zone) resolution {
	switch qtype {
	case dns.TypeSOA, dns.TypeANY:
		return resolution{authoritative: true, answer: []dns.RR{soaRecord(suffix(asked, Origin), z)}}
	case dns.TypeNS:
		return resolution{authoritative: true, answer: []dns.RR{nsRecord(asked)}}
	default:
		return negative(dns.RcodeSuccess, soaRecord(suffix(asked, Origin), z))
	}
}

// negative is NODATA or NXDOMAIN: the SOA is the first and only record (mDNSResponder looks at the
// first one alone).
func negative(rcode int, soa dns.RR) resolution {
	return resolution{rcode: rcode, authoritative: true, ns: []dns.RR{soa}}
}

// classify finds what a folded wire name is. It allocates nothing.
func classify(key []byte, z *Zone, v View) kind {
	if string(key) == originKey {
		return apex
	}
	if inZone(key) {
		if _, exists := z.lookup(key[:len(key)-len(originKey)], v); exists {
			return inside
		}
		return absent
	}
	if string(key) == discoveryKey {
		return discovery
	}
	if v == HostView {
		return outside
	}
	switch string(key) {
	// "No such name" here would say that nothing below exists either (RFC 8020), and a cache in
	// the box may believe it.
	case "\x00", "\x08internal\x00", "\x04arpa\x00", "\x08resolver\x04arpa\x00":
		return above
	}
	return notHere
}

// inZone tells whether a folded wire name is below the zone. It goes label by label: the octets of
// the zone's name could also be the inside of a longer label.
func inZone(key []byte) bool {
	for len(key) > len(originKey) {
		key = key[1+int(key[0]):]
		if string(key) == originKey {
			return true
		}
	}
	return false
}
