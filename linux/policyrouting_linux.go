package linux

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// RoutingByMark says, one line each, which policy routing rules look at these bits of packets' marks.
func RoutingByMark(bits uint32) ([]string, error) {
	rules, err := netlink.RuleList(netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list policy routing rules: %w", err)
	}
	var out []string
	for _, r := range rules {
		if r.Mark&bits != 0 {
			out = append(out, fmt.Sprintf("policy routing rule %d matches the mark %#x", r.Priority, r.Mark))
		}
	}
	return out, nil
}
