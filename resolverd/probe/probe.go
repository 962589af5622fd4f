// Package probe asks a running answerer, over the wire, whether it does what every lookup of the
// host relies on.
//
// It shares no code with the answerer but the name of the zone: what it holds replies against is
// written down here a second time. It asks the address it is given and nobody else, so it does not
// tell whether the host's own resolver asks the answerer; that is another check.
package probe

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/gominimal/minhost/resolverd/zonefile"
)

const (
	// timeout is for one try of one question. A live answerer needs well under a millisecond.
	timeout = time.Second
	// tries is how often a question is put: a datagram may be lost to a full socket buffer.
	tries = 2
	// ceiling is the longest that any answer may be kept, in seconds.
	ceiling = 15

	hostName = "minhost." + zonefile.Origin
)

// hostAddr is what hostName answers, with or without boxes.
var hostAddr = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Result is what a good answerer showed of itself.
type Result struct {
	Serial  uint32        // of the zone: the generation of the zone file in use, 0 without one
	Queries int           // how many were asked
	Slowest time.Duration // reply of them
}

// ErrNoName and ErrNoAddress are the two ways in which Lookup finds nothing.
var (
	ErrNoName    = errors.New("no such name")
	ErrNoAddress = errors.New("the name has no address")
)

// Check asks the answerer at addr ("127.0.0.1:15353") over UDP and over TCP for a name that always
// has an address, for the AAAA of it, and for a name that nobody has. The error holds a line for
// each reply that is not as it must be. Both views of the answerer pass.
func Check(ctx context.Context, addr string) (Result, error) {
	var result Result
	var errs []error
	for _, network := range []string{"udp", "tcp"} {
		for _, q := range questions() {
			reply, took, err := exchange(ctx, network, addr, q.name, q.qtype)
			result.Queries++
			result.Slowest = max(result.Slowest, took)
			if err == nil {
				err = q.judge(reply)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s %s, %s %s: %w", network, addr, q.name, dns.TypeToString[q.qtype], err))
				continue
			}
			for _, rr := range reply.Ns {
				if soa, ok := rr.(*dns.SOA); ok {
					result.Serial = soa.Serial
				}
			}
		}
	}
	return result, errors.Join(errs...)
}

// Lookup asks the answerer at addr for the address of a box, named with or without the zone ("web",
// "web.min.internal").
func Lookup(ctx context.Context, addr, name string) (netip.Addr, error) {
	fqdn := strings.ToLower(dns.Fqdn(name))
	if !dns.IsSubDomain(zonefile.Origin, fqdn) {
		fqdn += zonefile.Origin
	}
	reply, _, err := exchange(ctx, "udp", addr, fqdn, dns.TypeA)
	if err == nil && reply.Truncated {
		reply, _, err = exchange(ctx, "tcp", addr, fqdn, dns.TypeA)
	}
	switch {
	case err != nil:
		return netip.Addr{}, fmt.Errorf("lookup %s at %s: %w", zonefile.Printable(fqdn), addr, err)
	case reply.Rcode == dns.RcodeNameError:
		return netip.Addr{}, fmt.Errorf("lookup %s at %s: %w", zonefile.Printable(fqdn), addr, ErrNoName)
	case reply.Rcode != dns.RcodeSuccess:
		return netip.Addr{}, fmt.Errorf("lookup %s at %s: %s", zonefile.Printable(fqdn), addr, dns.RcodeToString[reply.Rcode])
	}
	for _, rr := range reply.Answer {
		if a, ok := rr.(*dns.A); ok {
			got, _ := netip.AddrFromSlice(a.A)
			return got.Unmap(), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("lookup %s at %s: %w", zonefile.Printable(fqdn), addr, ErrNoAddress)
}

// exchange puts one question. It takes only a reply to that very question, in its letter case.
func exchange(ctx context.Context, network, addr, name string, qtype uint16) (*dns.Msg, time.Duration, error) {
	query := new(dns.Msg).SetQuestion(name, qtype)
	query.SetEdns0(1232, false)
	client := &dns.Client{Net: network, Timeout: timeout}
	var err error
	for range tries {
		var reply *dns.Msg
		var took time.Duration
		reply, took, err = client.ExchangeContext(ctx, query, addr)
		if err == nil {
			if len(reply.Question) != 1 || reply.Question[0] != query.Question[0] {
				err = errors.New("the reply does not repeat the question")
			}
			return reply, took, err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, 0, err
}

// unknownName is one that nobody has, and that no cache has seen.
func unknownName() string { return "no-" + strings.ToLower(rand.Text()) + "." + zonefile.Origin }
