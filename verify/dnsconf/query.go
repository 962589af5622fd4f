package main

import (
	"encoding/binary"
	"slices"

	"github.com/miekg/dns"
)

const zoneName = "min.internal."

// change alters a message before it is packed.
type change func(*dns.Msg)

func id(n uint16) change       { return func(m *dns.Msg) { m.Id = n } }
func class(c uint16) change    { return func(m *dns.Msg) { m.Question[0].Qclass = c } }
func opcode(o int) change      { return func(m *dns.Msg) { m.Opcode = o } }
func recursion(m *dns.Msg)     { m.RecursionDesired = true }
func checking(m *dns.Msg)      { m.CheckingDisabled = true }
func authentic(m *dns.Msg)     { m.AuthenticatedData = true }
func reserved(m *dns.Msg)      { m.Zero = true }
func authoritative(m *dns.Msg) { m.Authoritative = true }

// edns adds an OPT record with a size, a version and options.
func edns(size uint16, version uint8, do bool, options ...dns.EDNS0) change {
	return func(m *dns.Msg) {
		o := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}, Option: options}
		o.SetUDPSize(size)
		o.SetVersion(version)
		o.SetDo(do)
		m.Extra = append(m.Extra, o)
	}
}

// local is an option that nobody knows.
func local(code uint16, data string) dns.EDNS0 {
	return &dns.EDNS0_LOCAL{Code: code, Data: []byte(data)}
}

// ask packs a question for a name below the zone, or for a name that ends in a dot.
func ask(name string, qtype uint16, changes ...change) []byte {
	if !dns.IsFqdn(name) {
		name += "." + zoneName
	}
	m := &dns.Msg{Question: []dns.Question{{Name: name, Qtype: qtype, Qclass: dns.ClassINET}}}
	m.Id = 0x1f2e
	for _, c := range changes {
		c(m)
	}
	out, err := m.Pack()
	if err != nil {
		panic(err) // the checks are constants
	}
	return out
}

// raw is a message whose four counts are said to be these, with the octets of a good query for web
// and then more.
func raw(qd, an, ns, ar uint16, more ...string) []byte {
	b := ask("web", dns.TypeA)
	return append(counts(b, qd, an, ns, ar), slices.Concat(bytesOf(more)...)...)
}

// counts sets the counts of a header.
func counts(b []byte, qd, an, ns, ar uint16) []byte {
	for i, n := range []uint16{qd, an, ns, ar} {
		binary.BigEndian.PutUint16(b[4+2*i:], n)
	}
	return b
}

// named is a query for A of a name given by its octets.
func named(name string) []byte {
	return append(append(counts([]byte{0x1f, 0x2e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 1, 0, 0, 0), name...), 0, 1, 0, 1)
}

func bytesOf(all []string) [][]byte {
	var out [][]byte
	for _, s := range all {
		out = append(out, []byte(s))
	}
	return out
}
