package nft

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer/lease"
)

// A rule that ends is an element that the kernel drops by itself (at its time, though the helper may be dead).
// The end stands in the element's comment too, where a listing finds it as it was written.
const endComment = "until "

// ends says when the kernel drops an element, in milliseconds since 1970; 0 for never.
func ends(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// over says whether the kernel has dropped an element by now.
func (e Element) over(now time.Time) bool { return e.Until != 0 && e.Until <= now.UnixMilli() }

// comment is the end of an element as text.
func (e Element) comment() string {
	return endComment + time.UnixMilli(e.Until).UTC().Format(time.RFC3339Nano)
}

// readComment is its inverse; 0 for a comment of somebody else.
func readComment(s string) int64 {
	text, ok := strings.CutPrefix(s, endComment)
	t, err := time.Parse(time.RFC3339, text)
	if !ok || err != nil {
		return 0
	}
	return ends(t)
}

// timedCells is cells for rules of which some end. What two of them allow is one element, which ends with
// the last: the set takes no overlap. Addresses are cut where a prefix begins or ends.
func timedCells(rules []lease.Rule, v6 bool) []cell {
	var edges []netip.Addr
	var mine []lease.Rule
	for _, r := range rules {
		if !r.To.IsValid() || r.To.Addr().Is6() != v6 {
			continue
		}
		a := rangeOf(r.To.Masked())
		mine = append(mine, r)
		edges = append(edges, a.from)
		if next := a.to.Next(); next.IsValid() {
			edges = append(edges, next)
		}
	}
	// Those that last longest come first; what they allow is taken from the others.
	slices.SortStableFunc(mine, func(a, b lease.Rule) int {
		never := func(r lease.Rule) int { return map[bool]int{true: 0, false: 1}[r.Until.IsZero()] }
		return cmp.Or(cmp.Compare(never(a), never(b)), b.Until.Compare(a.Until))
	})
	slices.SortFunc(edges, netip.Addr.Compare)
	edges = slices.Compact(edges)
	var out []cell
	for i, from := range edges {
		to := lastOf(v6)
		if i+1 < len(edges) {
			to = edges[i+1].Prev()
		}
		out = append(out, segment(mine, addrs{from, to}, v6)...)
	}
	return joinAddrs(out)
}

// segment is the cells of addresses that no rule parts; rules are sorted.
func segment(rules []lease.Rule, a addrs, v6 bool) []cell {
	var out []cell
	var done coverage
	for len(rules) > 0 {
		until := rules[0].Until
		var c coverage
		for len(rules) > 0 && rules[0].Until.Equal(until) {
			if rules[0].To.Contains(a.from) {
				c.add(rules[0], v6)
			}
			rules = rules[1:]
		}
		rest := c
		rest.remove(&done)
		for _, x := range rest.cells(a) {
			x.until = ends(until)
			out = append(out, x)
		}
		for p := range done {
			done[p] = union(append(slices.Clone(done[p]), c[p]...))
		}
	}
	return out
}

func lastOf(v6 bool) netip.Addr {
	if v6 {
		return rangeOf(netip.PrefixFrom(netip.IPv6Unspecified(), 0)).to
	}
	return rangeOf(netip.PrefixFrom(netip.IPv4Unspecified(), 0)).to
}

func anyEnds(rules []lease.Rule) bool {
	return slices.ContainsFunc(rules, func(r lease.Rule) bool { return !r.Until.IsZero() })
}
