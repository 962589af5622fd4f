package linux

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// RoutingByMark says, one line each, which policy routing rules use these bits of packets' marks: their value has one,
// or they look at a part of the mark that has one. A rule for a whole mark without our bits matches none of ours.
func RoutingByMark(bits uint32) ([]string, error) {
	rules, err := netlink.RuleList(netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list policy routing rules: %w", err)
	}
	var out []string
	for _, r := range rules {
		mask := ^uint32(0)
		if r.Mask != nil {
			mask = *r.Mask
		}
		if r.Mark&bits == 0 && (mask == ^uint32(0) || mask&bits == 0) {
			continue
		}
		family := map[int]string{netlink.FAMILY_V6: "-6 "}[r.Family]
		out = append(out, fmt.Sprintf("policy routing rule %d looks at the mark %#x/%#x for table %d (ip %srule)", r.Priority, r.Mark, mask, r.Table, family))
	}
	return out, nil
}
