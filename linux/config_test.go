package linux

import (
	"strings"
	"testing"

	"github.com/gominimal/minhost/linux/nft"
)

func TestParseConfig(t *testing.T) {
	for text, want := range map[string]nft.Marks{
		`{}`:                                 nft.DefaultMarks(),
		`{"marks": {"lease": "0x01000000"}}`: {Belt: 0x40000000, Lease: 0x01000000, Host: 0x10000000, Ingress: 0x08000000, Foreign: 0x04000000, Flow: 0x02000000},
		`{"marks": {"belt": "0x00800000", "lease": "0x00400000", "host": "0x00200000", "ingress": "0x00100000", "foreign": "0x00080000", "flow": "0x00040000"}}`: {
			Belt: 0x00800000, Lease: 0x00400000, Host: 0x00200000, Ingress: 0x00100000, Foreign: 0x00080000, Flow: 0x00040000},
	} {
		if got, err := ParseConfig([]byte(text)); err != nil || got.Marks != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		``: "EOF", `{} {}`: "more than one", `{"mark": {}}`: "unknown field", `{"marks": {"approve": "0x40000000"}}`: "there are belt, lease",
		`{"marks": {"lease": "40000000"}}`: "is no bit", `{"marks": {"lease": "0x"}}`: "is no bit", `{"marks": {"lease": "0x140000000"}}`: "is no bit",
		`{"marks": {"lease": "0x40000000"}}`: "one bit of its own", `{"marks": {"lease": "0x8000"}}`: "one bit of its own",
		`{"marks": {"lease": "0x03000000"}}`: "one bit of its own", `{"marks": {"lease": "0x0"}}`: "one bit of its own",
	} {
		if got, err := ParseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %s", text, got, err, want)
		}
	}
}
