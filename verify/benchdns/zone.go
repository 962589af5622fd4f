package main

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/miekg/dns"

	"github.com/gominimal/minhost/resolverd/zonefile"
)

const (
	bootID    = "bench"
	nameCount = 200
)

func boxName(i int) string { return fmt.Sprintf("box-%d", i) }

func boxAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 64, byte(1 + i%253)}) }

// ourZone is a zone of so many names in the answerer's format.
func ourZone(names int) zonefile.File {
	f := zonefile.File{BootID: bootID, Generation: 1, Names: map[string]netip.Addr{}}
	for i := range names {
		f.Names[boxName(i)] = boxAddr(i)
	}
	return f
}

// masterZone is the same zone as other servers read it (RFC 1035 section 5).
func masterZone() string {
	var b strings.Builder
	b.WriteString("$TTL 5\n@ IN SOA min.internal. . 1 5 5 15 5\n@ IN NS minhost.min.internal.\nminhost IN A 127.0.0.1\n")
	for i := range nameCount {
		fmt.Fprintf(&b, "%s IN A %s\n", boxName(i), boxAddr(i))
	}
	return b.String()
}

// mix is the queries of the benchmark, in the order in which they are asked, each with id 0.
func mix() ([][]byte, error) {
	types := []uint16{dns.TypeA, dns.TypeA, dns.TypeAAAA, dns.TypeA, dns.TypeA, dns.TypeHTTPS, dns.TypeA, dns.TypeA, 0, dns.TypeA}
	var all [][]byte
	for i := range nameCount * 5 {
		name, qtype := boxName(i*7%nameCount), types[i%len(types)]
		if qtype == 0 {
			name, qtype = fmt.Sprintf("no-%d", i), dns.TypeA
		}
		m := new(dns.Msg).SetQuestion(name+"."+zonefile.Origin, qtype)
		m.Id = 0
		out, err := m.Pack()
		if err != nil {
			return nil, fmt.Errorf("query %s: %w", name, err)
		}
		all = append(all, out)
	}
	return all, nil
}
