package linux

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/gominimal/minhost/linux/nft"
)

func TestParsePlanes(t *testing.T) {
	c, err := ParseConfig([]byte(`{"planes": {"cohort": {"mark": "0x00800000", "source": ["192.0.2.5", "2001:db8::5"]}, "node": {"mark": "0x00400000"}}}`))
	want := nft.Planes{Cohort: nft.Plane{Mark: 0x800000, Source4: netip.MustParseAddr("192.0.2.5"), Source6: netip.MustParseAddr("2001:db8::5")}, Node: nft.Plane{Mark: 0x400000}}
	if err != nil || c.Planes != want {
		t.Errorf("%+v, %v", c.Planes, err)
	}
	for text, want := range map[string]string{
		`{"planes": {"runner": {}}}`:                                                         "unknown field",
		`{"planes": {"node": {"mark": "1"}}}`:                                                "is no bit",
		`{"planes": {"node": {"source": ["192.0.2.5"]}}}`:                                    "needs a mark",
		`{"planes": {"node": {"mark": "0x20000000"}}}`:                                       "one bit of its own",
		`{"planes": {"node": {"mark": "0x00400000", "source": ["192.0.2.5", "192.0.2.6"]}}}`: "one address of each family",
		`{"planes": {"node": {"mark": "0x00400000", "source": ["everywhere"]}}}`:             "one address of each family",
		`{"marks": {"flow": "0x00400000"}, "planes": {"node": {"mark": "0x00400000"}}}`:      "one bit of its own",
	} {
		if got, err := ParseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %s", text, got, err, want)
		}
	}
}
