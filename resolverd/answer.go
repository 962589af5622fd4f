package resolverd

import (
	"encoding/binary"

	"github.com/miekg/dns"
)

// What a transport carries, in octets.
const (
	// UDPLimit is the largest reply over UDP, and the size that replies announce (the DNS flag
	// day 2020 value). An asker without EDNS gets at most 512, whatever the limit.
	UDPLimit = 1232
	// TCPLimit is the largest message over TCP. The size that EDNS gives does not matter there.
	TCPLimit = 65535

	minUDPSize = 512
)

// Answer returns the reply to a query, or nil where silence is right: to a response, and to what is
// too short to be a message. It is total: every input has one of the two, and it never panics.
// limit is TCPLimit, or for UDP at most UDPLimit; a reply is never longer than the limit and, over
// UDP, never longer than the asker said it takes.
//
// Every reply to a readable question repeats it octet by octet. Order of the errors: FORMERR when
// the message cannot be read, NOTIMP for an opcode other than QUERY, BADVERS, REFUSED for a class
// other than IN.
func Answer(msg []byte, z *Zone, v View, limit int) []byte {
	q, ok, err := parseQuery(msg)
	switch {
	case !ok:
		return nil
	case q.opcode != dns.OpcodeQuery:
		return reply(q, resolution{rcode: dns.RcodeNotImplemented}, limit)
	case err != nil:
		return reply(q, resolution{rcode: dns.RcodeFormatError}, limit)
	case q.edns != nil && q.edns.version != 0:
		return reply(q, resolution{rcode: dns.RcodeBadVers}, limit)
	case q.qclass != dns.ClassINET:
		return reply(q, resolution{rcode: dns.RcodeRefused}, limit)
	}
	return reply(q, resolve(q, z, v), limit)
}

// reply packs a resolution. What does not fit goes without its records and with TC set, never with
// some of them: half a negative answer would be one without its SOA.
func reply(q query, r resolution, limit int) []byte {
	m := &dns.Msg{Compress: true, Answer: r.answer, Ns: r.ns}
	m.MsgHdr = dns.MsgHdr{
		Id:               binary.BigEndian.Uint16(q.header),
		Response:         true,
		Opcode:           q.opcode,
		Authoritative:    r.authoritative,
		RecursionDesired: q.header[2]&0x01 != 0,
		CheckingDisabled: q.header[3]&0x10 != 0, // RFC 4035 section 3.1.6: copied, and ignored
		Rcode:            r.rcode,
	}
	if q.question != nil {
		m.Question = []dns.Question{{Name: q.asked, Qtype: q.qtype, Qclass: q.qclass}}
	}
	if q.edns != nil {
		m.Extra = []dns.RR{q.edns.reply()}
	}
	out, err := m.Pack()
	if err == nil && len(out) > sizeFor(q.edns, limit) {
		m.Truncated, m.Answer, m.Ns = true, nil, nil
		out, err = m.Pack()
	}
	if err != nil {
		return failure(q.header)
	}
	return out
}

// sizeFor is the largest reply that may be sent. Sizes under 512 mean 512 (RFC 6891 section 6.2.3).
func sizeFor(e *edns, limit int) int {
	if limit >= TCPLimit {
		return TCPLimit
	}
	size := minUDPSize
	if e != nil {
		size = max(size, int(e.size))
	}
	return min(size, limit)
}

// reply is the OPT record of a reply: no option is answered, so none is repeated (RFC 6891 section
// 6.1.2), and of the flags only DO is copied (RFC 3225).
func (e *edns) reply() dns.RR {
	opt := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT, Class: UDPLimit}}
	if e.do {
		opt.SetDo()
	}
	return opt
}

// failure is SERVFAIL and nothing else. No input is known that leads here.
func failure(query []byte) []byte {
	out := make([]byte, headerSize)
	copy(out, query[:3])
	out[2] = query[2]&0x79 | 0x80 // opcode and RD stay, QR is set
	out[3] = dns.RcodeServerFailure
	return out
}
