package resolverd

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/miekg/dns"
)

// agree holds that fast gives what Answer gives, or leaves the query to it.
func agree(t *testing.T, msg []byte, z *Zone, v View) (taken bool) {
	t.Helper()
	var out [minUDPSize]byte
	for i := range out {
		out[i] = 0xa5 // what an earlier reply left there
	}
	before := bytes.Clone(msg)
	n := fast(&out, msg, z, v)
	if !bytes.Equal(msg, before) {
		t.Fatal("the query was changed")
	}
	if n == 0 {
		return false
	}
	for _, limit := range []int{minUDPSize, UDPLimit, TCPLimit} {
		if want := Answer(msg, z, v, limit); !bytes.Equal(out[:n], want) {
			t.Fatalf("query %x, view %s\nfast    %x\ncareful %x", msg, v, out[:n], want)
		}
	}
	return true
}

// variants are a query in other letter cases, with other flags, cut, continued and with odd OPTs.
func variants(msg []byte) [][]byte {
	var all [][]byte
	add := func(change func([]byte) []byte) { all = append(all, change(bytes.Clone(msg))) }
	for _, bits := range []uint16{0, 0x0100, 0x0010, 0x0130, 0x07ff, 0x8000, 0x0800, 0x2800} {
		add(func(b []byte) []byte { binary.BigEndian.PutUint16(b[2:], bits); return b })
	}
	add(func(b []byte) []byte {
		for i := headerSize; i < len(b); i++ {
			if b[i] >= 'a' && b[i] <= 'z' && i%3 == 0 {
				b[i] -= 'a' - 'A'
			}
		}
		return b
	})
	for _, tail := range []string{opt, optV1, optOwned, optPoint, optWith("\x00\x0a\x00\x0812345678"), optWith("\x00\x0a\x00"), opt + opt, opt + "x", record} {
		add(func(b []byte) []byte { b[11]++; return append(b, tail...) })
		add(func(b []byte) []byte { return append(b, tail...) })
	}
	for cut := range min(len(msg), 40) {
		add(func(b []byte) []byte { return b[:len(b)-cut] })
	}
	for _, count := range []int{5, 7, 9, 10, 11} {
		add(func(b []byte) []byte { b[count]++; return b })
	}
	return all
}

// TestFastIsCareful: both paths give the same octets to every case, over all types, in both views.
func TestFastIsCareful(t *testing.T) {
	zone, cases := readCases(t, "testdata/answers.txt")
	for _, c := range cases {
		msg, _ := question(t, c.ask)
		for _, v := range []View{HostView, BoxView} {
			for _, z := range []*Zone{zone, nil} {
				agree(t, msg, z, v)
				for _, other := range variants(msg) {
					agree(t, other, z, v)
				}
			}
		}
	}
	for qtype := range uint16(300) {
		for _, name := range []string{"web", "stopped", "nobody", "host", "b.c", "x.web"} {
			m := new(dns.Msg).SetQuestion(name+"."+Origin, qtype)
			for _, v := range []View{HostView, BoxView} {
				agree(t, pack(t, m), zone, v)
			}
		}
	}
}

// TestFastTakesTheOrdinary: what programs ask all day does not fall through to the careful path.
func TestFastTakesTheOrdinary(t *testing.T) {
	zone, _ := readCases(t, "testdata/answers.txt")
	for _, ask := range []string{
		"web.min.internal. A", "web.min.internal. AAAA", "web.min.internal. HTTPS", "wEb.Min.internal. A +rd +edns=1232 +do",
		"nobody.min.internal. A", "a.b.nobody.min.internal. AAAA +rd", "stopped.min.internal. A", "host.min.internal. A",
		"example.com. A +rd +edns=512", "com. A", "min.internal.example. A",
	} {
		for _, v := range []View{HostView, BoxView} {
			msg, _ := question(t, ask)
			if !agree(t, msg, zone, v) {
				t.Errorf("%s in the %s view is left to the careful path", ask, v)
			}
		}
	}
	// And names of the greatest length, where an offset is more than an octet holds.
	label := string(bytes.Repeat([]byte("a"), 63))
	long := wire(head(0, 0, 1, 0, 0, 0), "\x3f", label, "\x3f", label, "\x3f", label, "\x2f", label[:47], originKey, "\x00\x01\x00\x01")
	if !agree(t, long, zone, HostView) {
		t.Error("a name of 255 octets is left to the careful path")
	}
}

// FuzzFastSlow: there is no message that the two paths answer differently.
func FuzzFastSlow(f *testing.F) {
	zone, cases := readCases(f, "testdata/answers.txt")
	for _, c := range cases {
		msg, view := question(f, c.ask)
		f.Add(msg, view == BoxView)
	}
	f.Add(wire(head(1, 0, 1, 0, 0, 1), askWeb, optWith("\x00\x0a\x00\x0812345678")), false)
	f.Fuzz(func(t *testing.T, msg []byte, box bool) {
		view := HostView
		if box {
			view = BoxView
		}
		agree(t, msg, zone, view)
	})
}

// TestFastAllocatesNothing, also while the zone is another for each query.
func TestFastAllocatesNothing(t *testing.T) {
	zone, _ := readCases(t, "testdata/answers.txt")
	var out [minUDPSize]byte
	for _, ask := range []string{"web.min.internal. A", "web.min.internal. HTTPS +edns=1232", "nobody.min.internal. A", "example.com. A", "box a-name-of-more-than-thirty-two-octets.example.com. A"} {
		msg, view := question(t, ask)
		if n := testing.AllocsPerRun(100, func() { fast(&out, msg, zone, view) }); n != 0 {
			t.Errorf("%s: %v allocations", ask, n)
		}
	}
}

func BenchmarkAnswer(b *testing.B) {
	names := map[string]netip.Addr{}
	for i := range 254 {
		names[fmt.Sprintf("box-%d", i)] = netip.AddrFrom4([4]byte{127, 0, 64, byte(1 + i%253)})
	}
	zone, err := NewZone(names, 1)
	if err != nil {
		b.Fatal(err)
	}
	msg, _ := question(b, "box-77.min.internal. A +rd")
	b.Run("fast", func(b *testing.B) {
		var out [minUDPSize]byte
		b.ReportAllocs()
		for b.Loop() {
			fast(&out, msg, zone, HostView)
		}
	})
	b.Run("careful", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Answer(msg, zone, HostView, UDPLimit)
		}
	})
}
