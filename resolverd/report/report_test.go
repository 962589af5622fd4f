package report

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestRefusedRoundTrip(t *testing.T) {
	for _, c := range []struct {
		wire string
		want string
	}{
		{"\x07example\x03com\x00", "example.com"},
		{"\x00", "."},
		{"", "."},
		{"\x04_dns\x08resolver\x04arpa\x00", "_dns.resolver.arpa"},
		{"\x03a b\x02.\\\x00", `a\032b.\046\092`},
		{"\x06\x1b[2J\n\x00\x00", `\027\0912J\010\000`},
		{"\x03\xff\x80\x7f\x00", `\255\128\127`},
		{"\x09short", "short"},
	} {
		name := Presentation([]byte(c.wire))
		if name != c.want {
			t.Errorf("%q: %s, want %s", c.wire, name, c.want)
		}
		r := Refused{Lease: 77, Network: "udp", From: netip.MustParseAddrPort("[::1]:4242"), Type: 65, Name: name}
		got, err := DecodeRefused(r.Encode())
		if err != nil || got != r {
			t.Errorf("%s: %+v, %v", r.Encode(), got, err)
		}
	}
	if got := Presentation([]byte("\x3f" + strings.Repeat("\x01", 63) + "\x3f" + strings.Repeat("\x01", 63) + "\x00")); len(got) != MaxName {
		t.Errorf("%d octets", len(got))
	}
}

func TestDecodeRefusesTheRest(t *testing.T) {
	const good = "minhost-refused 1 77 udp 127.0.0.1:4242 1 example.com"
	if _, err := DecodeRefused([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"", "minhost-refused 1 ", good + " more", good + "\n", strings.Replace(good, " 1 77", " 2 77", 1), strings.Replace(good, "77", "077", 1),
		strings.Replace(good, "77", "65536", 1), strings.Replace(good, "77", "-1", 1), strings.Replace(good, "udp", "sctp", 1),
		strings.Replace(good, "127.0.0.1", "localhost", 1), strings.Replace(good, "example.com", "", 1),
		strings.Replace(good, "example.com", "a\x1b[2J", 1), good + strings.Repeat("x", 255),
	} {
		if r, err := DecodeRefused([]byte(bad)); err == nil {
			t.Errorf("%q is taken: %+v", bad, r)
		}
	}
}

func TestCountersRoundTrip(t *testing.T) {
	var c Counters
	for k := range c {
		c[k] = uint64(k) * 1_000_000_007
	}
	got, err := DecodeCounters(c.Encode())
	if err != nil || got != c {
		t.Errorf("%s: %v, %v", c.Encode(), got, err)
	}
	got, err = DecodeCounters([]byte("minhost-counters 1 address=3 later=9"))
	if want := (Counters{Address: 3}); err != nil || got != want {
		t.Errorf("of another version: %v, %v", got, err)
	}
	for _, bad := range []string{"", "minhost-counters 2 address=3", "minhost-counters 1 address", "minhost-counters 1 address=-3"} {
		if c, err := DecodeCounters([]byte(bad)); err == nil {
			t.Errorf("%q is taken: %v", bad, c)
		}
	}
	if len(Counters{^uint64(0)}.Encode()) > MaxBytes/2 {
		t.Error("the counters grow towards the bound of a datagram")
	}
}

// TestRates: a flood of one lease is cut, and takes nothing from another's.
func TestRates(t *testing.T) {
	now := time.Unix(1000, 0)
	s := NewSender("")
	s.now = func() time.Time { return now }
	admitted := func(lease uint16, tries int) (n int) {
		for range tries {
			if s.admit(lease) {
				n++
			}
		}
		return n
	}
	if n := admitted(1, 1000); n != leaseBurst {
		t.Errorf("%d at once, want %d", n, leaseBurst)
	}
	if n := admitted(2, 5); n != 5 {
		t.Errorf("another lease: %d of 5", n)
	}
	now = now.Add(time.Second)
	if n := admitted(1, 1000); n != leaseRate {
		t.Errorf("%d in the next second, want %d", n, leaseRate)
	}
	now = now.Add(time.Hour)
	total := 0
	for lease := range uint16(5000) {
		total += admitted(lease, 1)
	}
	if total != totalBurst || len(s.lease) > maxLeases {
		t.Errorf("%d of all leases at once, want %d; %d remembered", total, totalBurst, len(s.lease))
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("minhost-refused 1 77 udp 127.0.0.1:4242 1 example.com")
	f.Add("minhost-counters 1 address=3 nodata=4")
	f.Add("minhost-lookup 1 box 77 udp 127.0.0.1:4242 1 outside 0 example.com")
	f.Fuzz(func(t *testing.T, text string) {
		if l, err := DecodeLookup([]byte(text)); err == nil && string(l.Encode()) != text {
			t.Errorf("%q is taken and written as %q", text, l.Encode())
		}
		if r, err := DecodeRefused([]byte(text)); err == nil && string(r.Encode()) != text {
			t.Errorf("%q is taken and written as %q", text, r.Encode())
		}
		_, _ = DecodeCounters([]byte(text))
	})
}
