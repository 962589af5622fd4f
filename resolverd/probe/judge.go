package probe

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/miekg/dns"

	"github.com/gominimal/minhost/resolverd/zonefile"
)

// checked is a question and what its reply must be.
type checked struct {
	name  string
	qtype uint16
	judge func(*dns.Msg) error
}

func questions() []checked {
	return []checked{
		{hostName, dns.TypeA, judgeAddress},
		{hostName, dns.TypeAAAA, judgeNegative(dns.RcodeSuccess)},
		{unknownName(), dns.TypeA, judgeNegative(dns.RcodeNameError)},
	}
}

// judgeAddress wants the host's address and nothing else.
func judgeAddress(m *dns.Msg) error {
	if err := judgeHeader(m, dns.RcodeSuccess); err != nil {
		return err
	}
	if len(m.Answer) != 1 {
		return fmt.Errorf("%d answers, want one", len(m.Answer))
	}
	a, ok := m.Answer[0].(*dns.A)
	if !ok {
		return fmt.Errorf("answer of type %s, want A", dns.TypeToString[m.Answer[0].Header().Rrtype])
	}
	if got, _ := netip.AddrFromSlice(a.A); got.Unmap() != hostAddr {
		return fmt.Errorf("address %s, want %s", got.Unmap(), hostAddr)
	}
	if a.Hdr.Ttl > ceiling {
		return fmt.Errorf("TTL %d, at most %d", a.Hdr.Ttl, ceiling)
	}
	return nil
}

// judgeNegative wants no answer and exactly one SOA, of the zone, as the first authority record:
// without it mDNSResponder stalls every lookup of a Mac.
func judgeNegative(rcode int) func(*dns.Msg) error {
	return func(m *dns.Msg) error {
		if err := judgeHeader(m, rcode); err != nil {
			return err
		}
		if len(m.Answer) > 0 {
			return fmt.Errorf("%d answers, want none", len(m.Answer))
		}
		if len(m.Ns) != 1 {
			return fmt.Errorf("%d authority records, want one SOA", len(m.Ns))
		}
		soa, ok := m.Ns[0].(*dns.SOA)
		switch {
		case !ok:
			return fmt.Errorf("authority of type %s, want SOA", dns.TypeToString[m.Ns[0].Header().Rrtype])
		case !strings.EqualFold(soa.Hdr.Name, zonefile.Origin):
			return fmt.Errorf("SOA of %s, want that of %s", zonefile.Printable(soa.Hdr.Name), zonefile.Origin)
		case soa.Hdr.Ttl > ceiling || soa.Minttl > ceiling:
			return fmt.Errorf("SOA TTL %d, minimum %d, each at most %d", soa.Hdr.Ttl, soa.Minttl, ceiling)
		}
		return nil
	}
}

func judgeHeader(m *dns.Msg, rcode int) error {
	switch {
	case m.Rcode != rcode:
		return fmt.Errorf("%s, want %s", dns.RcodeToString[m.Rcode], dns.RcodeToString[rcode])
	case !m.Authoritative:
		return errors.New("not authoritative: another server answers here")
	case m.Truncated:
		return errors.New("truncated")
	case m.IsEdns0() == nil:
		return errors.New("no OPT record though the query had one")
	}
	return nil
}
