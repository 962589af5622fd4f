package fakedarwin

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// resolver is configd and mDNSResponder: every file in /etc/resolver is a resolver, and what was looked
// up is remembered by the rules that were read and measured on the real cache engine.
type resolver struct {
	mac *Mac

	mu      sync.Mutex
	cache   map[string]remembered
	hangups []time.Time
	stalls  int
}

type remembered struct {
	addr  netip.Addr // invalid: there is none
	until time.Time
}

func newResolver(m *Mac) *resolver { return &resolver{mac: m, cache: map[string]remembered{}} }

// file is one resolver.
type file struct {
	domain, server string
	port           int
	flags          bool // a and aaaa are asked whatever the network is
}

// files reads the folder as the parser of macOS does: one blank between words, LF at the end of a line.
func (r *resolver) files() []file {
	dir := filepath.Join(r.mac.Root, "private/etc/resolver")
	names, _ := os.ReadDir(dir)
	var all []file
	for _, n := range names {
		b, err := os.ReadFile(filepath.Join(dir, n.Name()))
		if err != nil {
			continue
		}
		f := file{domain: n.Name(), port: 53}
		for line := range strings.SplitSeq(string(b), "\n") {
			words := strings.Split(line, " ")
			switch {
			case len(words) == 2 && words[0] == "nameserver":
				f.server = words[1]
			case len(words) == 2 && words[0] == "domain":
				f.domain = words[1]
			case len(words) == 2 && words[0] == "port":
				f.port, _ = strconv.Atoi(words[1])
			case line == "flags a aaaa":
				f.flags = true
			}
		}
		if _, err := netip.ParseAddr(f.server); err == nil {
			all = append(all, f)
		}
	}
	return all
}

func (r *resolver) scutil(c Call) Answer {
	if len(c.Args) != 1 || c.Args[0] != "--dns" {
		return fail(1, "scutil: usage")
	}
	out := "DNS configuration\n\nresolver #1\n  search domain[0] : lan\n  nameserver[0] : 192.168.20.1\n  if_index : 14 (en0)\n"
	for i, f := range r.files() {
		out += fmt.Sprintf("\nresolver #%d\n  domain   : %s\n  nameserver[0] : %s\n", i+8, f.domain, f.server)
		if f.port != 53 {
			out += fmt.Sprintf("  port     : %d\n", f.port)
		}
		out += "  flags    : Request A records, Request AAAA records\n"
	}
	return Answer{Stdout: out + "\nDNS configuration (for scoped queries)\n\nresolver #1\n  nameserver[0] : 192.168.20.1\n"}
}

func (r *resolver) dscacheutil(c Call) Answer {
	if len(c.Args) == 1 && c.Args[0] == "-flushcache" {
		r.flush()
		return Answer{}
	}
	if len(c.Args) != 5 || c.Args[0] != "-q" {
		return fail(1, "dscacheutil: usage")
	}
	name := c.Args[4]
	if a := r.Lookup(name); a.IsValid() {
		return Answer{Stdout: fmt.Sprintf("name: %s\nip_address: %s\n\n", name, a)}
	}
	return Answer{}
}

func (r *resolver) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.cache)
}

func (r *resolver) hangup() {
	r.flush()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hangups = append(r.hangups, time.Now())
}

// Hangups are when mDNSResponder was told to forget.
func (m *Mac) Hangups() []time.Time {
	m.resolver.mu.Lock()
	defer m.resolver.mu.Unlock()
	return append([]time.Time(nil), m.resolver.hangups...)
}

// Stalls is how often a lookup had to wait for an answerer that was silent, or that made mDNSResponder
// stall by an answer without SOA or without its question.
func (m *Mac) Stalls() int {
	m.resolver.mu.Lock()
	defer m.resolver.mu.Unlock()
	return m.resolver.stalls
}

// Lookup asks as a program of the Mac does.
func (m *Mac) Lookup(name string) netip.Addr { return m.resolver.Lookup(name) }

// LookupFresh asks as a program does whose name is in no cache.
func (m *Mac) LookupFresh(name string) netip.Addr {
	m.resolver.flush()
	return m.resolver.Lookup(name)
}

// Lookup is what a program gets.
func (r *resolver) Lookup(name string) netip.Addr {
	key := strings.ToLower(strings.TrimSuffix(name, "."))
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.cache[key]; ok && time.Now().Before(c.until) {
		return c.addr
	}
	best := file{}
	for _, f := range r.files() {
		if (key == f.domain || strings.HasSuffix(key, "."+f.domain)) && len(f.domain) > len(best.domain) {
			best = f
		}
	}
	if best.server == "" || r.mac.Profile || r.mac.Offline && !best.flags {
		return netip.Addr{} // the network's resolver: no such name
	}
	// AAAA first; its negative answer must not spoil the A that follows.
	r.ask(best, key, dns.TypeAAAA)
	addr, ttl, ok := r.ask(best, key, dns.TypeA)
	if !ok {
		r.stalls++
		return netip.Addr{}
	}
	r.cache[key] = remembered{addr, time.Now().Add(ttl)}
	return addr
}

// ask puts one question. An answer without its question is not heard; a negative one must begin its
// authority section with the SOA.
func (r *resolver) ask(f file, name string, kind uint16) (addr netip.Addr, ttl time.Duration, ok bool) {
	q := new(dns.Msg).SetQuestion(dns.Fqdn(name), kind)
	c := &dns.Client{Timeout: time.Second}
	reply, _, err := c.Exchange(q, netip.AddrPortFrom(netip.MustParseAddr(f.server), uint16(f.port)).String())
	if err != nil || r.mac.Deaf || len(reply.Question) != 1 || reply.Question[0] != q.Question[0] {
		return addr, 0, false
	}
	for _, rr := range reply.Answer {
		if a, is := rr.(*dns.A); is {
			addr, _ = netip.AddrFromSlice(a.A.To4())
			return addr, max(15, time.Duration(a.Hdr.Ttl)) * time.Second, true
		}
	}
	if len(reply.Ns) == 0 {
		return addr, 0, false
	}
	soa, is := reply.Ns[0].(*dns.SOA)
	if !is {
		return addr, 0, false
	}
	seconds := min(3600, max(60, min(soa.Minttl, soa.Hdr.Ttl)))
	return addr, time.Duration(float64(seconds)*1.25+2) * time.Second, true
}
