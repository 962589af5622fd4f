package egress

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/belt"
	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/verify/netlab"
)

// tracking is what "no rules" has: connection tracking, as on every host with a firewall.
const tracking = "table inet t {\nchain o {\ntype filter hook output priority 0\nct state established accept\n}\n}\n"

type lab struct {
	testing.TB
	table *nft.Table
	n     uint16
}

type boxed struct {
	fd      int
	verdict lease.Verdict
}

func newLab(b *testing.B) *lab {
	l := &lab{TB: b}
	tree := netlab.Tree(b)
	id, err := tree.BoxesID()
	l.must(err)
	l.table, err = nft.New(nft.Config{Boxes: id, Level: tree.Level()}, slog.New(slog.DiscardHandler))
	l.must(err)
	fd, err := tree.BoxesFD()
	l.must(err)
	cookie, err := belt.NetnsCookie()
	l.must(err)
	belts, err := belt.New(fd, belt.Fit(belt.Default(cookie)), nil)
	l.must(err)
	l.must(belts.Apply())
	l.must(l.table.Refill(context.Background(), nil))
	b.Cleanup(func() { l.must(l.table.Destroy(context.Background())); l.table.Close() })
	return l
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lab) box(p lease.Policy) boxed {
	l.n++
	leaf := netlab.Leaf(l, fmt.Sprintf("bench%d", l.n))
	return boxed{leaf.FD(), lease.Verdict{Leaf: leaf.ID(), Number: l.n, Address: netip.AddrFrom4([4]byte{127, 0, 64, byte(l.n)}), Policy: p}}
}

// fill makes the table hold these boxes and others up to a number, each with a rule of its own.
func (l *lab) fill(t testing.TB, n int, boxes ...boxed) {
	t.Helper()
	var all []lease.Verdict
	for _, b := range boxes {
		all = append(all, b.verdict)
	}
	for i := len(all); i < n; i++ {
		a := netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)})
		all = append(all, lease.Verdict{Leaf: uint64(1)<<40 + uint64(i), Number: uint16(100 + i), Policy: lease.Policy{Egress: lease.Rules,
			Rules: []lease.Rule{{To: netip.PrefixFrom(a, 32), First: 443, Last: 443, Protocol: lease.TCP}}}})
	}
	l.must(l.table.Refill(context.Background(), all))
}

// list is a policy of n rules, one of which is for the sink.
func list(n int) lease.Policy {
	p := lease.Policy{Egress: lease.Rules}
	for i := range n - 1 {
		p.Rules = append(p.Rules, lease.Rule{To: netip.PrefixFrom(netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}), 32), First: 443, Last: 443, Protocol: lease.TCP})
	}
	return policyWith(p, netip.MustParseAddrPort(sink))
}

func policyWith(p lease.Policy, to netip.AddrPort) lease.Policy {
	for _, protocol := range []lease.Protocol{lease.UDP, lease.TCP} {
		p.Rules = append(p.Rules, lease.Rule{To: netip.PrefixFrom(to.Addr(), 32), First: to.Port(), Last: to.Port(), Protocol: protocol})
	}
	return p
}

// linear is the other way to do it: a rule for each of so many cgroups.
func (l *lab) linear(n int) string {
	var s strings.Builder
	s.WriteString("table inet t {\nchain o {\ntype filter hook output priority 0\nct state established counter\n")
	for i := range n {
		leaf := netlab.Leaf(l, fmt.Sprintf("linear%d", i))
		fmt.Fprintf(&s, "socket cgroupv2 level 3 %q drop\n", "minhost/boxes/"+leaf.Name())
	}
	s.WriteString("}\n}\n")
	return s.String()
}
