package report

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLookupRoundTrip(t *testing.T) {
	for _, l := range []Lookup{
		{View: "host", Network: "udp", From: netip.MustParseAddrPort("127.0.0.1:1"), Type: 28, Answer: NoData, Name: "web.min.internal"},
		{View: "box", Lease: 77, Network: "tcp", From: netip.MustParseAddrPort("[::1]:4242"), Type: 65535, Answer: Outside, Missed: 1 << 40, Name: `\027\0912J.`},
		{View: "box", Network: "udp", From: netip.MustParseAddrPort("127.0.64.9:53"), Answer: Truncated, Name: strings.Repeat("x", MaxName)},
	} {
		got, err := DecodeLookup(l.Encode())
		if err != nil || got != l {
			t.Errorf("%s: %+v, %v", l.Encode(), got, err)
		}
	}
	if l := (Lookup{Type: 65}); l.TypeText() != "HTTPS" {
		t.Error(l.TypeText())
	}
	if l := (Lookup{Type: 1234}); l.TypeText() != "TYPE1234" {
		t.Error(l.TypeText())
	}
}

func TestDecodeLookupTakesNothingElse(t *testing.T) {
	const good = "minhost-lookup 1 box 77 udp 127.0.0.1:4242 1 outside 0 example.com"
	if _, err := DecodeLookup([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{"", "x"}, {" 1 box", " 2 box"}, {"box", "lan"}, {"77", "077"}, {"77", "65536"}, {"udp", "sctp"}, {"127.0.0.1", "localhost"},
		{" 1 outside", " -1 outside"}, {"outside", "inside"}, {" 0 ", " 00 "}, {"example.com", "a\x1b[2J"}, {"example.com", ""}, {"com", "com more"}, {"com", "com\n"},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if l, err := DecodeLookup([]byte(bad)); err == nil {
			t.Errorf("%q is taken: %+v", bad, l)
		}
	}
}

// TestLookupsAreBounded: of a flood some are told, and the next one that is says how many were not.
func TestLookupsAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	r, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.conn.Close()
	now := time.Unix(1000, 0)
	s := NewSender(path)
	s.now = func() time.Time { return now }
	defer s.Close()
	made := 0
	one := func() Lookup {
		made++
		return Lookup{View: "host", Network: "udp", From: netip.MustParseAddrPort("127.0.0.1:1"), Name: "x"}
	}
	buf := make([]byte, MaxBytes)
	for range lookupBurst + 30 {
		s.Lookup(one)
		if made <= lookupBurst && s.missed == 0 { // read along: the socket's queue is short
			if _, err := r.conn.Read(buf); err != nil {
				t.Fatal(err)
			}
		}
	}
	if made != lookupBurst {
		t.Errorf("%d were told at once", made)
	}
	now = now.Add(time.Second / lookupRate)
	s.Lookup(one)
	n, err := r.conn.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	if l, err := DecodeLookup(buf[:n]); err != nil || l.Missed != 30 {
		t.Errorf("%+v, %v", l, err)
	}
	var nobody *Sender
	nobody.Lookup(one)
}
