package main

import (
	"net"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// options are checks of EDNS (RFC 6891).
func options() []check {
	found := address("127.0.64.1")
	formerr := rcode(dns.RcodeFormatError)
	badvers := []judge{rcode(dns.RcodeBadVers), hasOPT, empty}
	const opt = "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00"
	return []check{
		{"OPT gets OPT", udp(ask("web", dns.TypeA, edns(1232, 0, false)), found, hasOPT)},
		{"no OPT gets none", udp(ask("web", dns.TypeA), noOPT)},
		{"OPT with no data", udp(ask("web", dns.TypeAAAA, edns(1232, 0, false)), nodata, hasOPT)},
		{"OPT with no such name", udp(ask("nobody", dns.TypeA, edns(1232, 0, false)), nxdomain, hasOPT)},
		{"OPT with a refusal", udp(ask("example.com.", dns.TypeA, edns(1232, 0, false)), refused, hasOPT)},
		{"version 1", udp(ask("web", dns.TypeA, edns(1232, 1, false)), badvers...)},
		{"version 255", udp(ask("web", dns.TypeA, edns(1232, 255, false)), badvers...)},
		{"version 1 of an unknown name", udp(ask("nobody", dns.TypeA, edns(1232, 1, false)), badvers...)},
		{"DO comes back", udp(ask("web", dns.TypeA, edns(1232, 0, true)), found, hasOPT, doIs(true))},
		{"DO stays off", udp(ask("web", dns.TypeA, edns(1232, 0, false)), found, doIs(false))},
		{"DO with no such name", udp(ask("nobody", dns.TypeA, edns(1232, 0, true)), nxdomain, hasOPT)},
		{"DO and DNSKEY of the apex", udp(ask(zoneName, dns.TypeDNSKEY, edns(1232, 0, true)), nodata, hasOPT)},
		{"size 0 is 512", udp(ask("web", dns.TypeA, edns(0, 0, false)), found, hasOPT)},
		{"size 100 is 512", udp(ask("nobody", dns.TypeA, edns(100, 0, false)), nxdomain, hasOPT, flag("TC", tc, false))},
		{"size 65535", udp(ask("web", dns.TypeA, edns(65535, 0, false)), found, hasOPT)},
		{"an unknown option is ignored", udp(ask("web", dns.TypeA, edns(1232, 0, false, local(65100, "abcd"))), found, hasOPT, noOption(65100))},
		{"many options", udp(ask("web", dns.TypeA, edns(1232, 0, false, local(65100, "a"), local(65101, ""), local(65102, "xyz"))), found, hasOPT)},
		{"a client's cookie", udp(ask("web", dns.TypeA, edns(1232, 0, false, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"})), found, hasOPT)},
		{"a name server's id", udp(ask("web", dns.TypeA, edns(1232, 0, false, &dns.EDNS0_NSID{Code: dns.EDNS0NSID})), found, hasOPT)},
		{"padding", udp(ask("web", dns.TypeA, edns(1232, 0, false, &dns.EDNS0_PADDING{Padding: make([]byte, 64)})), found, hasOPT)},
		{"a client's subnet", udp(ask("web", dns.TypeA, edns(1232, 0, false, &dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 24, Address: net.IPv4(192, 0, 2, 0)})), found, hasOPT)},
		{"two OPT records", udp(raw(1, 0, 0, 2, opt, opt), formerr)},
		{"an OPT record with a name", udp(raw(1, 0, 0, 1, "\x03web"+opt), formerr)},
		{"an option that is cut", udp(raw(1, 0, 0, 1, opt[:9], "\x00\x05\x00\x0a\x00\x08x"), formerr)},
		{"an OPT record that is cut", udp(raw(1, 0, 0, 1, opt[:7]), formerr)},
	}
}

// messages are checks of what is no ordinary question.
func messages() []check {
	formerr := rcode(dns.RcodeFormatError)
	found := address("127.0.64.1")
	not := rcode(dns.RcodeNotImplemented)
	question := string(ask("web", dns.TypeA)[12:])
	label := "\x3f" + strings.Repeat("a", 63)
	response := ask("web", dns.TypeA)
	response[2] |= 0x80
	return []check{
		{"silence to nothing", silence(nil)},
		{"silence to eleven octets", silence(ask("web", dns.TypeA)[:11])},
		{"silence to a response", silence(response)},
		{"silence to a broken response", silence(response[:15])},
		{"two questions", udp(raw(2, 0, 0, 0, question), formerr)},
		{"two questions said, one there", udp(raw(2, 0, 0, 0), formerr)},
		{"no question", udp(counts(ask("web", dns.TypeA)[:12], 0, 0, 0, 0), formerr)},
		{"a question that is cut", udp(ask("web", dns.TypeA)[:20], formerr)},
		{"a class that is cut", udp(ask("web", dns.TypeA)[:33], formerr)},
		{"a name that points at itself", udp(named("\xc0\x0c"), formerr)},
		{"a name that points ahead", udp(named("\xc0\x20"), formerr)},
		{"a label of type 01", udp(named("\x41a\x00"), formerr)},
		{"a label of type 10", udp(named("\x81a\x00"), formerr)},
		{"a name of 256 octets", udp(named(label+label+label+"\x3e"+label[2:]+"\x00"), formerr)},
		{"a record said that is not there", udp(raw(1, 0, 0, 1), formerr)},
		{"opcode STATUS", udp(ask("web", dns.TypeA, opcode(dns.OpcodeStatus)), not, empty)},
		{"opcode IQUERY", udp(ask("web", dns.TypeA, opcode(dns.OpcodeIQuery)), not, empty)},
		{"opcode 15", udp(ask("web", dns.TypeA, opcode(15)), not, empty)},
		{"NOTIFY", udp(ask(zoneName, dns.TypeSOA, opcode(dns.OpcodeNotify)), rcode(dns.RcodeNotImplemented, dns.RcodeRefused, dns.RcodeNotAuth), empty)},
		{"UPDATE", udp(ask(zoneName, dns.TypeSOA, opcode(dns.OpcodeUpdate)), rcode(dns.RcodeNotImplemented, dns.RcodeRefused, dns.RcodeNotAuth), empty)},
		{"TCP", tcp([][]byte{ask("web", dns.TypeA)}, 512, found)},
		{"no such name over TCP", tcp([][]byte{ask("nobody", dns.TypeA)}, 512, nxdomain)},
		{"EDNS over TCP", tcp([][]byte{ask("web", dns.TypeAAAA, edns(512, 0, false))}, 512, nodata, hasOPT)},
		{"two queries of one connection", tcp([][]byte{ask("web", dns.TypeA, id(1)), ask("WEB", dns.TypeA, id(2))}, 512, found)},
		{"fifty queries sent ahead", tcp(many(50), 4096, found)},
		{"a query octet by octet", tcp([][]byte{ask("web", dns.TypeA)}, 1, found)},
		{"two queries cut anywhere", tcp(many(2), 7, found)},
		{"an idle connection keeps nobody out", idle},
		{"a broken message over TCP harms nobody", broken},
	}
}

func many(n int) [][]byte {
	var all [][]byte
	for i := range n {
		all = append(all, ask("web", dns.TypeA, id(uint16(i+1))))
	}
	return all
}

// idle holds twenty connections open, one with half a message, and asks on another.
func idle(addr string) error {
	for i := range 20 {
		conn, err := net.DialTimeout("tcp", addr, wait)
		if err != nil {
			return err
		}
		defer conn.Close()
		if i == 0 {
			_, _ = conn.Write([]byte{0, 40, 1, 2, 3})
		}
	}
	return tcp(many(3), 512, address("127.0.64.1"))(addr)
}

// broken sends garbage and a length of 0, each on a connection of its own, and then asks.
func broken(addr string) error {
	for _, garbage := range []string{"\x00\x00", "\x00\x05hello", "\xff\xff\x00", "GET / HTTP/1.1\r\n\r\n"} {
		conn, err := net.DialTimeout("tcp", addr, wait)
		if err != nil {
			return err
		}
		conn.SetDeadline(time.Now().Add(wait))
		_, _ = conn.Write([]byte(garbage))
		conn.Close()
	}
	return tcp(many(1), 512, address("127.0.64.1"))(addr)
}

func checks() []check {
	return slices.Concat(headers(), lookups(), options(), messages())
}
