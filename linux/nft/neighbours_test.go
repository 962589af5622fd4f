package nft

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNeighbours: who writes a table is told by its name or by its chains; chains that filter nothing of
// boxes, and empty ones that let everything through, are nobody's.
func TestNeighbours(t *testing.T) {
	for name, c := range map[string]struct {
		chains []chain
		want   []string
	}{
		"nothing":           {nil, nil},
		"empty":             {[]chain{{"inet", "filter", "output", "output", false, 0}}, nil},
		"only nat":          {[]chain{{"ip", "nat", "DOCKER", "", false, 3}}, nil},
		"nftables.service":  {[]chain{{"inet", "filter", "input", "input", true, 0}}, []string{"nftables (inet filter)"}},
		"drops what leaves": {[]chain{{"inet", "filter", "OUTPUT", "output", true, 2}}, []string{"nftables (inet filter), which drops what it does not allow to leave"}},
		"firewalld":         {[]chain{{"inet", "firewalld", "filter_OUTPUT", "output", false, 4}, {"inet", "firewalld", "filter_INPUT", "input", false, 9}}, []string{"firewalld (inet firewalld)"}},
		"ufw and docker": {[]chain{
			{"ip", "filter", "INPUT", "input", true, 5}, {"ip", "filter", "OUTPUT", "output", false, 5}, {"ip", "filter", "ufw-user-input", "", false, 1},
			{"ip", "filter", "DOCKER-USER", "", false, 1}, {"ip6", "filter", "INPUT", "input", true, 5}, {"ip6", "filter", "ufw6-input", "", false, 1},
		}, []string{"docker (ip filter)", "ufw (ip filter, ip6 filter)"}},
	} {
		var got []string
		for _, n := range neighbours(c.chains) {
			got = append(got, n.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
