package lease

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestTerm(t *testing.T) {
	for _, c := range []struct {
		seconds int
		until   string
		want    string // "" for never, "x" for an error
	}{
		{0, "", ""},
		{1, "", "2026-11-30T12:00:01Z"},
		{31536000, "", "2027-11-30T12:00:00Z"},
		{0, "2026-11-30T14:00:00.5+01:00", "2026-11-30T13:00:00.5Z"},
		{0, "2026-11-30T12:00:00.0019Z", "2026-11-30T12:00:00.001Z"},
		{-1, "", "x"}, {31536001, "", "x"}, {1, "2026-11-30T14:00:00Z", "x"},
		{0, "tomorrow", "x"}, {0, "2026-11-30T12:00:00Z", "x"}, {0, "2027-12-30T12:00:00Z", "x"},
	} {
		got, err := Term(c.seconds, c.until, noon)
		if (err != nil) != (c.want == "x") || err == nil && (Rule{Until: got}).Ends() != c.want {
			t.Errorf("%d %q: %v, %v; want %s", c.seconds, c.until, got, err, c.want)
		}
	}
}

func timed(t *testing.T, to, ports string, p Protocol, after time.Duration) Rule {
	r := rule(t, to, ports, p)
	r.Until = noon.Add(after)
	return r
}

// TestTimedCanonical: a wider rule that ends first covers nothing; among equal ones the last to end stays.
func TestTimedCanonical(t *testing.T) {
	wide := timed(t, "10.0.0.0/8", "", TCP, time.Hour)
	for name, c := range map[string]struct {
		in   []Rule
		want []string
	}{
		"wider ends first":  {[]Rule{wide, rule(t, "10.1.0.0/16", "443", TCP)}, []string{"10.0.0.0/8/tcp@2026-11-30T13:00:00Z", "10.1.0.0/16:443/tcp"}},
		"wider ends last":   {[]Rule{wide, timed(t, "10.1.0.0/16", "443", TCP, time.Minute)}, []string{"10.0.0.0/8/tcp@2026-11-30T13:00:00Z"}},
		"wider never ends":  {[]Rule{rule(t, "10.0.0.0/8", "", TCP), timed(t, "10.1.0.0/16", "443", TCP, time.Minute)}, []string{"10.0.0.0/8/tcp"}},
		"equal but for end": {[]Rule{timed(t, "10.0.0.0/8", "", TCP, time.Minute), wide}, []string{"10.0.0.0/8/tcp@2026-11-30T13:00:00Z"}},
		"box":               {[]Rule{timed(t, "box:api", "3000", TCP, time.Minute)}, []string{"box:api:3000/tcp@2026-11-30T12:01:00Z"}},
	} {
		p, err := Policy{Egress: Rules, Rules: c.in}.Canonical()
		var got []string
		for _, r := range p.Rules {
			got = append(got, r.String())
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
}

// TestAt: rules are gone from their end on, and egress is deny behind the last.
func TestAt(t *testing.T) {
	p, err := Policy{Egress: Rules, Rules: []Rule{timed(t, "192.0.2.7", "443", TCP, time.Minute), timed(t, "192.0.2.8", "443", TCP, time.Hour)}}.Canonical()
	if err != nil || !p.NextEnd().Equal(noon.Add(time.Minute)) {
		t.Fatalf("%v, first end %v", err, p.NextEnd())
	}
	for _, c := range []struct {
		after       time.Duration
		left, ended int
		egress      Egress
	}{{time.Minute - time.Millisecond, 2, 0, Rules}, {time.Minute, 1, 1, Rules}, {time.Hour, 0, 2, Deny}} {
		left, ended := p.At(noon.Add(c.after))
		if len(left.Rules) != c.left || len(ended) != c.ended || left.Egress != c.egress {
			t.Errorf("after %v: %+v left, %+v ended", c.after, left, ended)
		}
		if again, err := left.Canonical(); err != nil || !again.Equal(left) {
			t.Errorf("after %v: not canonical: %+v, %v", c.after, left, err)
		}
	}
	if open, ended := (Policy{Egress: Open}).At(noon); open.Egress != Open || ended != nil || !open.NextEnd().IsZero() {
		t.Errorf("open: %+v, %+v", open, ended)
	}
}

// TestTimedCanonicalDecidesTheSame: at every time, what Canonical drops changes no decision.
func TestTimedCanonicalDecidesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		for i := range p.Rules {
			if n := rapid.IntRange(0, 3).Draw(t, "minutes"); n > 0 {
				p.Rules[i].Until = noon.Add(time.Duration(n) * time.Minute)
			}
		}
		c, err := p.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(rapid.IntRange(0, 4).Draw(t, "c")), byte(rapid.IntRange(0, 255).Draw(t, "d"))}),
			uint16(rapid.IntRange(0, 90).Draw(t, "port")))
		at := noon.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "at")) * time.Minute)
		was, _ := p.At(at)
		is, _ := c.At(at)
		if a, b := was.Decide(to, TCP, Place{}), is.Decide(to, TCP, Place{}); a.Allowed != b.Allowed {
			t.Fatalf("%s at %v: %+v before, %+v behind", to, at, a, b)
		}
	})
}

// TestRecordOfTimed: the end of a rule is durable, one that has passed too.
func TestRecordOfTimed(t *testing.T) {
	want := sample(t)
	want.Policy.Rules[0].Until = noon.Add(-1500 * time.Millisecond)
	b, err := Encode(want, "boot-1")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Decode(b, "boot-1"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
}
