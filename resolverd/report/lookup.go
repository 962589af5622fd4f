package report

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

const lookupMagic = "minhost-lookup 1 "

// Lookup is any lookup that was answered. It is told only while somebody wants to hear of them.
type Lookup struct {
	View    string // "host" or "box"
	Lease   uint16 // number of the lease, 0 when unknown; on the host's view always
	Network string // "udp" or "tcp"
	From    netip.AddrPort
	Type    uint16 // of the records it asked for
	Answer  Kind
	Missed  uint64 // lookups since the last one told that were not: they came too fast
	Name    string // untrusted, in presentation form
}

// TypeText is the type as people write it: "AAAA", "TYPE1234".
func (l Lookup) TypeText() string { return dns.Type(l.Type).String() }

// Encode renders the datagram.
func (l Lookup) Encode() []byte {
	return fmt.Appendf(nil, "%s%s %d %s %s %d %s %d %s", lookupMagic, l.View, l.Lease, l.Network, l.From, l.Type, l.Answer, l.Missed, l.Name)
}

// DecodeLookup reads what Encode wrote and nothing else.
func DecodeLookup(b []byte) (Lookup, error) {
	rest, ok := strings.CutPrefix(string(b), lookupMagic)
	fields := strings.Split(rest, " ")
	if !ok || len(b) > MaxBytes || len(fields) != 8 {
		return Lookup{}, fmt.Errorf("report of %d octets: not a lookup", len(b))
	}
	number, err1 := strconv.ParseUint(fields[1], 10, 16)
	from, err2 := netip.ParseAddrPort(fields[3])
	qtype, err3 := strconv.ParseUint(fields[4], 10, 16)
	missed, err4 := strconv.ParseUint(fields[6], 10, 64)
	l := Lookup{View: fields[0], Lease: uint16(number), Network: fields[2], From: from, Type: uint16(qtype),
		Answer: kindNamed(fields[5]), Missed: missed, Name: fields[7]}
	known := (l.View == "host" || l.View == "box") && (l.Network == "udp" || l.Network == "tcp") && l.Answer < Kinds
	for _, err := range []error{err1, err2, err3, err4} {
		known = known && err == nil
	}
	if !known || !presentable(l.Name) || string(l.Encode()) != string(b) {
		return Lookup{}, fmt.Errorf("report of %d octets: a field is not as it is written", len(b))
	}
	return l, nil
}

// kindNamed is Kinds for a name that no kind has.
func kindNamed(name string) Kind {
	for k := range Kinds {
		if names[k] == name {
			return k
		}
	}
	return Kinds
}
