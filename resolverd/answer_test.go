package resolverd

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// TestAnswers runs testdata/answers.txt. It fails for a reply that differs in anything: code,
// flags, records and their order, OPT, id, question.
func TestAnswers(t *testing.T) {
	zone, cases := readCases(t, "testdata/answers.txt")
	if len(cases) < 70 {
		t.Fatalf("%d cases read", len(cases))
	}
	for _, c := range cases {
		for _, limit := range []int{UDPLimit, TCPLimit} {
			t.Run(fmt.Sprintf("line %d/%d", c.line, limit), func(t *testing.T) {
				msg, view := question(t, c.ask)
				out := Answer(msg, zone, view, limit)
				if got := describe(unpack(t, out)); got != c.want {
					t.Errorf("> %s\ngot:\n%swant:\n%s", c.ask, got, c.want)
				}
				asked := msg[headerSize : headerSize+questionSize(t, msg)]
				if !bytes.Equal(out[:2], msg[:2]) || !bytes.Equal(out[headerSize:headerSize+len(asked)], asked) {
					t.Errorf("> %s\nid or question not as asked: %x", c.ask, out)
				}
			})
		}
	}
}

// questionSize is the length of the first question, found by the library.
func questionSize(t testing.TB, msg []byte) int {
	t.Helper()
	_, end, err := dns.UnpackDomainName(msg, headerSize)
	if err != nil {
		t.Fatal(err)
	}
	return end + 4 - headerSize
}

// TestEveryTypeAtAHeldName: a name that exists has no type that makes it look absent or broken.
func TestEveryTypeAtAHeldName(t *testing.T) {
	zone := textZone(t, "web 127.0.64.1", "off -", "a.above 127.0.64.2")
	const nodata = "NOERROR qr aa\nauthority min.internal. 5 IN SOA min.internal. . 0 5 5 15 5\n"
	for qtype := range uint16(300) {
		for _, name := range []string{"web", "off", "above", "host", "minhost"} {
			for _, view := range []View{HostView, BoxView} {
				m := new(dns.Msg)
				m.Question = []dns.Question{{Name: name + ".min.internal.", Qtype: qtype, Qclass: dns.ClassINET}}
				got := describe(unpack(t, Answer(pack(t, m), zone, view, UDPLimit)))
				switch qtype {
				case dns.TypeAXFR, dns.TypeIXFR:
					if got != "REFUSED qr\n" {
						t.Errorf("%s type %d: %s", name, qtype, got)
					}
				case dns.TypeA, dns.TypeANY:
					hasAddress := name != "off" && name != "above"
					if hasAddress == (got == nodata) {
						t.Errorf("%s type %d: %s", name, qtype, got)
					}
				default:
					if got != nodata {
						t.Errorf("%s type %d: %s", name, qtype, got)
					}
				}
			}
		}
	}
}

// TestNoReplyNeedsTCP: with the longest names that the wire and the zone allow, every reply fits in
// the 512 octets of an asker without EDNS. So no negative answer is ever cut, and none loses its SOA.
func TestNoReplyNeedsTCP(t *testing.T) {
	long := strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + "." + strings.Repeat("c", 63)
	zone := textZone(t, "zone serial 4294967295", long+" 127.0.64.253")
	fill := strings.Repeat("x.", 111) // 255 octets with min.internal and with example.com
	for _, name := range []string{long + ".min.internal.", fill + "x3.min.internal.", fill + "x4.example.com.",
		strings.Repeat(`\255\255.`, 70) + "min.internal."} {
		for _, qtype := range []string{"A", "AAAA", "ANY", "SOA", "AXFR"} {
			for _, view := range []string{"", "box "} {
				msg, v := question(t, view+name+" "+qtype+" +edns=0 +do")
				out := Answer(msg, zone, v, UDPLimit)
				if len(out) > minUDPSize {
					t.Errorf("%s%s: %d octets", view, qtype, len(out))
				}
				if m := unpack(t, out); m.Truncated || m.Rcode == dns.RcodeServerFailure {
					t.Errorf("%s%s: %s", view, qtype, describe(m))
				}
			}
		}
	}
}

// TestTruncation: what does not fit goes whole, keeps question and OPT, and is there over TCP. No
// query of the real zone comes to that, so the limit is made small.
func TestTruncation(t *testing.T) {
	zone := textZone(t, "web 127.0.64.1")
	for ask, want := range map[string]string{
		"web.min.internal. A +edns=1232 +rd": "NOERROR qr aa tc rd\nedns 1232\n",
		"nobody.min.internal. A +edns=1232":  "NXDOMAIN qr aa tc\nedns 1232\n",
		"web.min.internal. AAAA":             "NOERROR qr aa tc\n",
	} {
		msg, view := question(t, ask)
		whole := Answer(msg, zone, view, TCPLimit)
		for limit := len(whole) - 1; limit >= len(msg); limit-- {
			out := Answer(msg, zone, view, limit)
			if len(out) > limit {
				t.Fatalf("> %s\n%d octets, limit %d", ask, len(out), limit)
			}
			if got := describe(unpack(t, out)); got != want {
				t.Fatalf("> %s at %d\ngot:\n%swant:\n%s", ask, limit, got, want)
			}
		}
		if out := Answer(msg, zone, view, len(whole)); !bytes.Equal(out, whole) {
			t.Errorf("> %s: does not use the whole limit", ask)
		}
	}
}

func TestSizeFor(t *testing.T) {
	for _, c := range []struct {
		edns  *edns
		limit int
		want  int
	}{
		{nil, UDPLimit, 512},
		{&edns{size: 0}, UDPLimit, 512},
		{&edns{size: 511}, UDPLimit, 512},
		{&edns{size: 513}, UDPLimit, 513},
		{&edns{size: 65535}, UDPLimit, 1232},
		{nil, TCPLimit, 65535},
		{&edns{size: 512}, TCPLimit, 65535},
	} {
		if got := sizeFor(c.edns, c.limit); got != c.want {
			t.Errorf("sizeFor(%+v, %d) = %d, want %d", c.edns, c.limit, got, c.want)
		}
	}
}

// TestLayoutIgnoresCase: the promise that a precomputed reply needs. Replies to one name in two
// letter cases differ in the question alone.
func TestLayoutIgnoresCase(t *testing.T) {
	zone, cases := readCases(t, "testdata/answers.txt")
	for _, c := range cases {
		msg, view := question(t, c.ask)
		size := questionSize(t, msg)
		upper := bytes.Clone(msg)
		copy(upper[headerSize:], bytes.ToUpper(msg[headerSize:headerSize+size-4]))
		a, b := Answer(msg, zone, view, UDPLimit), Answer(upper, zone, view, UDPLimit)
		copy(b[headerSize:], a[headerSize:headerSize+size])
		if !bytes.Equal(a, b) {
			t.Errorf("> %s\n%x\n%x", c.ask, a, b)
		}
	}
}

func TestNilZoneIsEmpty(t *testing.T) {
	empty := textZone(t)
	for _, ask := range []string{"web.min.internal. A", "minhost.min.internal. A", "min.internal. SOA", "box x. A"} {
		msg, view := question(t, ask)
		if a, b := Answer(msg, nil, view, UDPLimit), Answer(msg, empty, view, UDPLimit); !bytes.Equal(a, b) {
			t.Errorf("> %s: %x and %x", ask, a, b)
		}
	}
}

func TestNewZoneRefuses(t *testing.T) {
	for name, addr := range map[string]string{
		"host":    "127.0.64.1",
		"minhost": "127.0.64.1",
		"Web":     "127.0.64.1",
		"a.b.c.d": "127.0.64.1",
		"":        "127.0.64.1",
		"router":  "192.0.2.1",
		"local":   "127.0.0.1",
		"six":     "::1",
		"mapped":  "::ffff:127.0.64.1",
	} {
		if z, err := NewZone(map[string]netip.Addr{name: netip.MustParseAddr(addr)}, 1); err == nil {
			t.Errorf("%s %s: zone of %d names", name, addr, z.Len())
		}
	}
}
