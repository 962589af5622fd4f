package lease

import (
	"bytes"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

func sample(t *testing.T) Lease {
	p, err := Policy{Egress: Rules, Rules: []Rule{rule(t, "10.0.0.0/8", "443", TCP), rule(t, "::/0", "", ICMP)},
		DenySubnets: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}, Ingress: FromPorts, IngressPorts: []uint16{80}}.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	l := Lease{ID: "b0123456789abcdef", Number: 7, UID: 1000, Name: "web", Address: netip.MustParseAddr("127.0.64.3"), Policy: p,
		State: Attached, Mode: ModeHost, EndWithConnection: true, Since: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	copy(l.SecretHash[:], bytes.Repeat([]byte{0xab}, 32))
	return l
}

// TestRecord: what is written is read back; the committed fixture must be read for ever.
func TestRecord(t *testing.T) {
	want := sample(t)
	b, err := Encode(want, "boot-1")
	if err != nil {
		t.Fatal(err)
	}
	fixture, err := os.ReadFile("testdata/lease-v1.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"encoded": b, "fixture": fixture} {
		got, err := Decode(text, "boot-1")
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", name, err, got, want)
		}
	}
	if _, err := Decode(b, "boot-2"); err == nil {
		t.Error("a record of another boot is taken")
	}
}

// TestRecordOfOwnIP: the fixture of an own-ip box must be read for ever, too.
func TestRecordOfOwnIP(t *testing.T) {
	want := sample(t)
	want.Mode, want.NetNS, want.Attempt = ModeOwnIP, 4026532999, "try 7"
	want.Tap = Tap{netip.MustParsePrefix("10.0.2.15/24"), netip.MustParseAddr("10.0.2.2"), 1500, "tap0"}
	fixture, err := os.ReadFile("testdata/lease-v1-own-ip.json")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Decode(fixture, "boot-1"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
}

// An own-ip box and one with its own localhost come back as they were.
func TestRecordOfNetworks(t *testing.T) {
	for name, change := range map[string]func(*Lease){
		"own localhost": func(l *Lease) { l.OwnLocalhost, l.Attempt = true, "try 7" },
		"none":          func(l *Lease) { l.Mode, l.NetNS = ModeNone, 4026532999 },
		"own-ip": func(l *Lease) {
			l.Mode = ModeOwnIP
			l.Tap = Tap{netip.MustParsePrefix("10.0.2.15/24"), netip.MustParseAddr("10.0.2.2"), 1500, "tap0"}
		},
	} {
		want := sample(t)
		change(&want)
		b, err := Encode(want, "boot-1")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Decode(b, "boot-1"); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", name, err, got, want)
		}
	}
	b, err := Encode(sample(t), "boot-1")
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"bridge", "own_ip"} {
		if _, err := Decode(bytes.Replace(b, []byte(`"mode":"host"`), []byte(`"mode":"`+mode+`"`), 1), "boot-1"); err == nil {
			t.Errorf("mode %s without a tap is taken", mode)
		}
	}
}

// TestBrokenRecord: cut or changed, a record is an error and never another lease.
func TestBrokenRecord(t *testing.T) {
	b, err := Encode(sample(t), "boot-1")
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(b) - 1 {
		if _, err := Decode(b[:n], "boot-1"); err == nil && n < len(b)-2 {
			t.Errorf("the first %d of %d octets are taken", n, len(b))
		}
	}
	for from, to := range map[string]string{
		`"id":"b`: `"id":"../`, `"number":7`: `"number":0`, `127.0.64.3`: `127.0.0.1`, `"attached"`: `"planned"`, `abab`: `zzzz`, `"web"`: `"w_b"`,
		`minhost/v1/lease`: `minhost/v2/lease`, `10.0.0.0/8`: `10.0.0.0/99`,
	} {
		if !strings.Contains(string(b), from) {
			t.Errorf("the record has no %s", from)
		}
		if _, err := Decode([]byte(strings.Replace(string(b), from, to, 1)), "boot-1"); err == nil {
			t.Errorf("%s instead of %s is taken", to, from)
		}
	}
}

func TestSecret(t *testing.T) {
	s, h := NewSecret()
	l := Lease{SecretHash: h}
	if !l.Owns(s) || l.Owns("") || l.Owns(s+"x") {
		t.Error("a lease is owned by its secret and nothing else")
	}
	if o, _ := NewSecret(); o == s || len(s) != 43 {
		t.Errorf("secret of %d letters", len(s))
	}
}

func TestAsk(t *testing.T) {
	if Ask(Attached, OpTeardown) != Proceed || Ask(Planned, OpTeardown) != WrongState || Ask(Gone, OpAttach) != NoSuchLease || Ask("x", OpAttach) != NoSuchLease {
		t.Error("the state table is read wrongly")
	}
}

// TestRecordOfBoxes: rules by box, who is let in and an unfinished cut are read back too.
func TestRecordOfBoxes(t *testing.T) {
	want := sample(t)
	want.Cutting, want.Generation = true, 1
	p, err := Policy{Egress: Rules, Rules: []Rule{rule(t, "box:api", "3000", TCP), rule(t, "box:api", "", Any), rule(t, "box:db", "5432", TCP)},
		Ingress: FromHost, IngressBoxes: []string{"Web", "a", "web"}}.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Rules) != 2 || !reflect.DeepEqual(p.IngressBoxes, []string{"a", "web"}) {
		t.Errorf("canonical: %+v", p)
	}
	want.Policy = p
	b, err := Encode(want, "boot-1")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Decode(b, "boot-1"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
}
