package resolverd

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/miekg/dns"
)

// FuzzAnswer: whatever comes in, there is silence or a reply that any client can take.
func FuzzAnswer(f *testing.F) {
	zone, cases := readCases(f, "testdata/answers.txt")
	for _, c := range cases {
		msg, view := question(f, c.ask)
		f.Add(msg, view == BoxView, uint16(UDPLimit))
	}
	f.Add(wire(head(0, 0, 1, 0, 0, 2), askWeb, opt, opt), false, uint16(512))
	f.Add(wire(head(5<<3, 0, 1, 0, 1, 1), askWeb, record, optV1), true, uint16(512))
	f.Add(wire(head(0, 0, 1, 0, 0, 1), askWeb, optWith("\x00\x0a\x00\x0812345678")), false, uint16(700))
	f.Add(wire(head(0, 0, 1, 1, 0, 0), "\x01\\\x03a.b\x00\x00\x01\x00\x01", "\xc0\x0c", record[3:]), true, uint16(65535))
	f.Fuzz(func(t *testing.T, msg []byte, box bool, size uint16) {
		view := HostView
		if box {
			view = BoxView
		}
		limit := max(minUDPSize, int(size))
		before := bytes.Clone(msg)
		out := Answer(msg, zone, view, limit)
		if !bytes.Equal(msg, before) {
			t.Fatal("the query was changed")
		}
		if silent := len(msg) < headerSize || msg[2]&0x80 != 0; silent != (out == nil) {
			t.Fatalf("silence is right: %v, reply %x", silent, out)
		}
		if out == nil {
			return
		}
		if len(out) > limit {
			t.Fatalf("%d octets, limit %d", len(out), limit)
		}
		m := new(dns.Msg)
		if err := m.Unpack(out); err != nil {
			t.Fatalf("reply %x: %v", out, err)
		}
		if err := checkReply(msg, out, m); err != nil {
			t.Fatalf("query %x\nreply %s\n%v", msg, m, err)
		}
	})
}

// checkReply holds what is true of every reply.
func checkReply(msg, out []byte, m *dns.Msg) error {
	switch {
	case !bytes.Equal(msg[:2], out[:2]), !m.Response, m.RecursionAvailable, m.AuthenticatedData, m.Zero:
		return fmt.Errorf("header")
	case (msg[2]^out[2])&0x79 != 0:
		return fmt.Errorf("opcode or RD not as asked")
	case m.Truncated:
		return fmt.Errorf("truncated")
	case m.Rcode == dns.RcodeServerFailure:
		return fmt.Errorf("server failure")
	case len(m.Question) == 0 && m.Rcode != dns.RcodeFormatError && m.Rcode != dns.RcodeNotImplemented:
		return fmt.Errorf("no question")
	}
	if len(m.Question) > 0 {
		_, end, err := dns.UnpackDomainName(out, headerSize)
		if err != nil || !bytes.HasPrefix(msg[headerSize:], out[headerSize:end+4]) {
			return fmt.Errorf("question not as asked")
		}
	}
	negative := m.Rcode == dns.RcodeNameError || m.Rcode == dns.RcodeSuccess && len(m.Answer) == 0
	if negative {
		if err := checkSOA(m); err != nil {
			return err
		}
	} else if len(m.Ns) > 0 {
		return fmt.Errorf("authority where none is right")
	}
	if m.Authoritative != (negative || len(m.Answer) > 0) {
		return fmt.Errorf("AA")
	}
	return checkRecords(m)
}

// checkSOA holds that a negative reply has exactly one SOA, first in authority, at or above the
// name asked, and that it lasts no longer than the ceiling.
func checkSOA(m *dns.Msg) error {
	if len(m.Ns) != 1 {
		return fmt.Errorf("%d authority records, want one SOA", len(m.Ns))
	}
	soa, ok := m.Ns[0].(*dns.SOA)
	switch {
	case !ok:
		return fmt.Errorf("authority is %s, want SOA", m.Ns[0])
	case !dns.IsSubDomain(soa.Hdr.Name, m.Question[0].Name):
		return fmt.Errorf("SOA of %s for %s", soa.Hdr.Name, m.Question[0].Name)
	case soa.Minttl > ttlCeiling:
		return fmt.Errorf("SOA minimum %d", soa.Minttl)
	}
	return nil
}

func checkRecords(m *dns.Msg) error {
	first, last := netip.MustParseAddr("127.0.64.1"), netip.MustParseAddr("127.0.64.254")
	for _, rr := range append(m.Answer, m.Ns...) {
		if rr.Header().Ttl > ttlCeiling {
			return fmt.Errorf("TTL of %s", rr)
		}
		if a, ok := rr.(*dns.A); ok {
			addr, _ := netip.AddrFromSlice(a.A)
			if addr = addr.Unmap(); addr != localhost && (addr.Less(first) || last.Less(addr)) {
				return fmt.Errorf("address of %s", rr)
			}
		}
	}
	return nil
}
