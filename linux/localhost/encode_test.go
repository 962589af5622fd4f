package localhost

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/gominimal/minhost/installer/lease"
)

func TestEncode(t *testing.T) {
	a := netip.MustParseAddr("127.0.64.7")
	for _, c := range []struct {
		home  lease.Home
		flags uint32
	}{
		{lease.Home{Leaf: 1, Address: a}, 0},
		{lease.Home{Leaf: 1, Address: a, Own: true}, flagOwn},
		{lease.Home{Leaf: 1, Address: a, Own: true, UDPWildcards: true}, flagOwn | flagUDPWild},
		{lease.Home{Leaf: 1, Address: a, Open: true}, flagOpenAll},
		{lease.Home{Leaf: 1, Address: a, OpenPorts: []uint16{80}}, flagOpenPorts},
	} {
		value, err := encode(c.home)
		if err != nil || !slices.Equal(value[:4], a.AsSlice()) || flagsOf(value) != c.flags {
			t.Errorf("%+v: % x, %v", c.home, value, err)
		}
	}
	for _, bad := range []lease.Home{{Leaf: 1}, {Address: a}, {Leaf: 1, Address: netip.MustParseAddr("::1")}, {Leaf: 1, Address: netip.MustParseAddr("192.0.2.1")}} {
		if v, err := encode(bad); err == nil {
			t.Errorf("%+v: % x", bad, v)
		}
	}
	if k := portKey(0x0102, 80); k[8] != 0 || k[9] != 80 || k == portKey(0x0103, 80) || k == portKey(0x0102, 81) {
		t.Errorf("% x", k)
	}
}
