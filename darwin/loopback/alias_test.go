package loopback

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

func read(t *testing.T, name string) []Alias {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	all, err := ParseIfconfig(b)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestCompare reads lo0 of real Macs. The third has 250 of ours beside others that only look like it: a count
// of the substring 127.0.64 finds 251.
func TestCompare(t *testing.T) {
	if d := Compare(read(t, "stock.txt")); len(d.Missing) != 254 || len(d.Wrong) != 0 {
		t.Errorf("stock: %s", d)
	}
	if d := Compare(read(t, "all-254.txt")); !d.Empty() {
		t.Errorf("all: %s", d)
	}
	trap, _ := os.ReadFile("testdata/250-and-others.txt")
	if n := strings.Count(string(trap), "127.0.64"); n <= 250 {
		t.Errorf("%d lines have the substring: no trap", n)
	}
	d := Compare(read(t, "250-and-others.txt"))
	if len(d.Missing)+len(d.Wrong) == 0 || len(d.Missing) != 4 {
		t.Errorf("trap: %s; %v", d, d.Missing)
	}
	// A single wrong mask is seen.
	all := read(t, "all-254.txt")
	all[7].Mask = 0xff000000
	if d := Compare(all); len(d.Wrong) != 1 || d.Wrong[0].Addr != all[7].Addr || len(d.Missing) != 0 {
		t.Errorf("one /8: %s", d)
	}
}

func TestInRange(t *testing.T) {
	for text, want := range map[string]bool{"127.0.64.1": true, "127.0.64.254": true, "127.0.64.0": false,
		"127.0.64.255": false, "127.0.65.1": false, "127.0.0.1": false, "::1": false, "10.0.64.1": false} {
		a := netip.MustParseAddr(text)
		if a.Is4() && InRange(a) != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
}

// TestBytes holds the structures against <netinet/in_var.h>, byte by byte. The lengths (16, 0x10) are
// what a mask of length 0 lacks: the kernel would take the mask of 127/8.
func TestBytes(t *testing.T) {
	a := aliasReq(Alias{netip.MustParseAddr("127.0.64.7"), HostMask})
	want := "6c6f3000000000000000000000000000" + // "lo0"
		"100200007f0040070000000000000000" + // address
		"00000000000000000000000000000000" + // no broadcast address
		"10020000ffffffff0000000000000000" // mask, with its length
	if got := hex.EncodeToString(a[:]); got != want {
		t.Errorf("in_aliasreq\n got %s\nwant %s", got, want)
	}
	r := ifReq(netip.MustParseAddr("127.0.64.254"))
	if got, want := hex.EncodeToString(r[:]), "6c6f3000000000000000000000000000100200007f0040fe0000000000000000"; got != want {
		t.Errorf("ifreq\n got %s\nwant %s", got, want)
	}
	// The size is part of the request number: _IOW('i', 26, 64 bytes) and _IOW('i', 25, 32 bytes).
	if len(a) != 0x8040691a>>16&0x1fff || len(r) != 0x80206919>>16&0x1fff {
		t.Errorf("sizes %d and %d", len(a), len(r))
	}
}

func TestParseIfconfigRefuses(t *testing.T) {
	for _, text := range []string{"\tinet 127.0.64.1\n", "\tinet x netmask 0xff\n", "\tinet 127.0.64.1 netmask zz\n", "\tinet 127.0.64.1 alias yes no\n"} {
		if all, err := ParseIfconfig([]byte(text)); err == nil {
			t.Errorf("%q is read as %v", text, all)
		}
	}
}

// model is an lo0 that fails on demand and counts calls.
type model struct {
	have  map[netip.Addr]uint32
	fails map[netip.Addr]int
	calls []string
	hurt  bool // sets /8 whatever is asked for
}

func (m *model) List(context.Context) ([]Alias, error) {
	var all []Alias
	for a, mask := range m.have {
		all = append(all, Alias{a, mask})
	}
	return all, nil
}

func (m *model) Set(_ context.Context, a Alias) error {
	m.calls = append(m.calls, a.String())
	if m.fails[a.Addr] > 0 {
		m.fails[a.Addr]--
		return errors.New("EBUSY")
	}
	m.have[a.Addr] = a.Mask
	if m.hurt {
		m.have[a.Addr] = 0xff000000
	}
	return nil
}

func (m *model) Remove(_ context.Context, a netip.Addr) error { delete(m.have, a); return nil }

func (m *model) bind(a netip.Addr) error {
	if _, ok := m.have[a]; !ok {
		return errors.New("can't assign requested address")
	}
	return nil
}

type noClock struct{ slept int }

func (*noClock) Now() time.Time { return time.Time{} }
func (c *noClock) Sleep(context.Context, time.Duration) error {
	c.slept++
	return nil
}

var _ host.Clock = (*noClock)(nil)

func TestEnsure(t *testing.T) {
	seven, other := netip.MustParseAddr("127.0.64.7"), netip.MustParseAddr("127.0.65.1")
	m := &model{have: map[netip.Addr]uint32{netip.MustParseAddr("127.0.0.1"): 0xff000000, other: 0xffffff00, seven: 0xff000000,
		netip.MustParseAddr("127.0.64.9"): HostMask}, fails: map[netip.Addr]int{netip.MustParseAddr("127.0.64.3"): 2}}
	clock := &noClock{}
	k := Keeper{m, m.bind, clock}
	o, err := k.Ensure(t.Context())
	if err != nil || o != (Outcome{252, 1, 254}) || clock.slept != 2 {
		t.Fatalf("%+v %v, slept %d", o, err, clock.slept)
	}
	if m.have[seven] != HostMask || m.have[other] != 0xffffff00 || m.have[netip.MustParseAddr("127.0.0.1")] != 0xff000000 {
		t.Error("masks: the wrong one is mended, all others stay")
	}
	for _, c := range m.calls {
		if strings.HasPrefix(c, "127.0.64.9 ") {
			t.Error("an alias that was right was set again")
		}
	}
	m.calls = nil
	if o, err := k.Ensure(t.Context()); err != nil || len(m.calls) != 0 || o.Present != 254 {
		t.Errorf("again: %v, %d calls", err, len(m.calls))
	}
}

// TestEnsureGivesUp: a failure that stays is an error with its cause, and bounded.
func TestEnsureGivesUp(t *testing.T) {
	m := &model{have: map[netip.Addr]uint32{}, fails: map[netip.Addr]int{netip.MustParseAddr("127.0.64.3"): 1000}}
	clock := &noClock{}
	o, err := Keeper{m, m.bind, clock}.Ensure(t.Context())
	if err == nil || !strings.Contains(err.Error(), "127.0.64.3") || o.Present != 253 || clock.slept != tries-1 {
		t.Errorf("%+v %v, slept %d", o, err, clock.slept)
	}
	m = &model{have: map[netip.Addr]uint32{}, hurt: true}
	if _, err := (Keeper{m, m.bind, clock}).Ensure(t.Context()); err == nil || !strings.Contains(err.Error(), "wrong mask") {
		t.Errorf("all 254 can be bound, with /8: %v", err)
	}
}

// TestUnbound: every address is bound, none for another, and the ones that cannot be are told with a cause.
func TestUnbound(t *testing.T) {
	var asked []netip.Addr
	bad, err := Unbound(func(a netip.Addr) error {
		asked = append(asked, a)
		if b := a.As4(); b[3] == 17 || b[3] == 254 {
			return errors.New("absent " + a.String())
		}
		return nil
	})
	if !slices.Equal(asked, Wanted()) || len(asked) != Count {
		t.Errorf("%d addresses bound", len(asked))
	}
	if len(bad) != 2 || bad[0] != netip.MustParseAddr("127.0.64.17") || err == nil || err.Error() != "absent 127.0.64.17" {
		t.Errorf("%v %v", bad, err)
	}
}

// TestIfconfig: the words that ifconfig gets. The mask is among them.
func TestIfconfig(t *testing.T) {
	r := hosttest.NewRunner(nil)
	r.On(ifconfigPath, func(host.Command) (host.Result, error) { return host.Result{}, nil })
	i, a := Ifconfig{r}, netip.MustParseAddr("127.0.64.7")
	if err := errors.Join(i.Set(t.Context(), Alias{a, HostMask}), i.Remove(t.Context(), a)); err != nil {
		t.Fatal(err)
	}
	want := []string{"/sbin/ifconfig lo0 alias 127.0.64.7 netmask 255.255.255.255", "/sbin/ifconfig lo0 -alias 127.0.64.7"}
	if got := r.Ran(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestMaskOf(t *testing.T) {
	for want, m := range map[uint32]net.IPMask{
		HostMask: net.CIDRMask(32, 32), 0xff000000: net.CIDRMask(8, 32), 0xffffff00: net.CIDRMask(120, 128), 0: nil,
	} {
		if got := maskOf(m); got != want {
			t.Errorf("%v is 0x%08x, want 0x%08x", m, got, want)
		}
	}
}
