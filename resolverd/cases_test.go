package resolverd

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// answerCase is one block of testdata/answers.txt.
type answerCase struct {
	line int
	ask  string // the question's line without "> "
	want string // the reply as describe prints it
}

// readCases reads a case file: the zone, then the questions.
func readCases(t testing.TB, path string) (*Zone, []answerCase) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var zone []string
	var cases []answerCase
	inZone := false
	scanner := bufio.NewScanner(file)
	for n := 1; scanner.Scan(); n++ {
		line := scanner.Text()
		switch ask, isQuestion := strings.CutPrefix(line, "> "); {
		case strings.HasPrefix(line, "#"):
		case line == "":
			inZone = false
		case strings.HasPrefix(line, "zone "):
			zone, inZone = []string{line}, true
		case inZone:
			zone = append(zone, line)
		case isQuestion:
			cases = append(cases, answerCase{line: n, ask: ask})
		default:
			cases[len(cases)-1].want += line + "\n"
		}
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return textZone(t, zone...), cases
}

// textZone makes a zone from "zone serial N" and "name address" lines.
func textZone(t testing.TB, lines ...string) *Zone {
	t.Helper()
	var serial uint32
	names := map[string]netip.Addr{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, " ")
		switch {
		case name == "zone":
			if _, err := fmt.Sscanf(value, "serial %d", &serial); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
		case value == "-":
			names[name] = netip.Addr{}
		default:
			names[name] = netip.MustParseAddr(value)
		}
	}
	z, err := NewZone(names, serial)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// question packs the text form "[view] name type [class] [+flags]".
func question(t testing.TB, text string) ([]byte, View) {
	t.Helper()
	m := new(dns.Msg)
	m.Id = 0xbeef
	view, edns, version := HostView, -1, 0
	var do bool
	fields := strings.Fields(text)
	if fields[0] == "box" {
		view, fields = BoxView, fields[1:]
	}
	m.Question = []dns.Question{{Name: fields[0], Qtype: dns.StringToType[fields[1]], Qclass: dns.ClassINET}}
	for _, field := range fields[2:] {
		flag, isFlag := strings.CutPrefix(field, "+")
		key, value, _ := strings.Cut(flag, "=")
		number, _ := strconv.Atoi(value)
		switch {
		case !isFlag:
			m.Question[0].Qclass = dns.StringToClass[field]
		case key == "rd":
			m.RecursionDesired = true
		case key == "cd":
			m.CheckingDisabled = true
		case key == "ad":
			m.AuthenticatedData = true
		case key == "do":
			do = true
		case key == "edns":
			edns = number
		case key == "version":
			version = number
		default:
			t.Fatalf("question %q: flag %s", text, field)
		}
	}
	if edns >= 0 {
		opt := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
		opt.SetUDPSize(uint16(edns))
		opt.SetVersion(uint8(version))
		if do {
			opt.SetDo()
		}
		m.Extra = []dns.RR{opt}
	}
	return pack(t, m), view
}

func pack(t testing.TB, m *dns.Msg) []byte {
	t.Helper()
	out, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func unpack(t testing.TB, msg []byte) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	if err := m.Unpack(msg); err != nil {
		t.Fatalf("reply %x: %v", msg, err)
	}
	return m
}

// describe prints a reply the way the case file writes it.
func describe(m *dns.Msg) string {
	var b strings.Builder
	code := dns.RcodeToString[m.Rcode]
	if m.Rcode == dns.RcodeBadVers {
		code = "BADVERS" // the library calls 16 BADSIG
	}
	b.WriteString(code)
	for _, flag := range []struct {
		set  bool
		name string
	}{
		{m.Response, "qr"}, {m.Authoritative, "aa"}, {m.Truncated, "tc"}, {m.RecursionDesired, "rd"},
		{m.RecursionAvailable, "ra"}, {m.Zero, "z"}, {m.AuthenticatedData, "ad"}, {m.CheckingDisabled, "cd"},
	} {
		if flag.set {
			b.WriteString(" " + flag.name)
		}
	}
	b.WriteString("\n")
	for _, rr := range m.Extra {
		if opt, ok := rr.(*dns.OPT); ok {
			fmt.Fprintf(&b, "edns %d", opt.UDPSize())
			if opt.Do() {
				b.WriteString(" do")
			}
			fmt.Fprintf(&b, "%s\n", strings.Repeat(" option", len(opt.Option)))
		}
	}
	for _, section := range []struct {
		name string
		rrs  []dns.RR
	}{{"answer", m.Answer}, {"authority", m.Ns}, {"additional", m.Extra}} {
		for _, rr := range section.rrs {
			if rr.Header().Rrtype != dns.TypeOPT {
				fmt.Fprintf(&b, "%s %s\n", section.name, strings.Join(strings.Fields(rr.String()), " "))
			}
		}
	}
	return b.String()
}
