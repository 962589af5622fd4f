package nft

import (
	"net/netip"
	"strings"
	"testing"
)

func TestPlanesCheck(t *testing.T) {
	four, six := netip.MustParseAddr("192.0.2.5"), netip.MustParseAddr("2001:db8::5")
	for _, p := range []Planes{{}, {Cohort: Plane{Mark: 0x800000}}, {Cohort: Plane{0x800000, four, six}, Node: Plane{0x400000, four, netip.Addr{}}}} {
		if err := p.Check(Marks{}); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	for want, p := range map[string]Planes{
		"needs a mark": {Node: Plane{Source4: four}},
		"one bit":      {Node: Plane{Mark: 0xc00000}},
		"not one of":   {Node: Plane{Mark: 0x40000000}},
		"0x8000 must":  {Node: Plane{Mark: 0x8000}},
		"0x800000":     {Cohort: Plane{Mark: 0x800000}, Node: Plane{Mark: 0x800000}},
		"each family":  {Cohort: Plane{0x800000, six, four}},
	} {
		if err := p.Check(Marks{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want %s", p, err, want)
		}
	}
}
