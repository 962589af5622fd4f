package nfttest

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/verify/netlab"
)

// A full table: 250 boxes, no two with the same rules, 20,000 elements together. Each box reaches its own
// port of one host and no neighbour's; a new policy in the middle of them changes that box alone.
func TestFullTable(t *testing.T) {
	const boxes, each = 250, 80
	l := newLab(t)
	l.belt()
	o := newOutside(l)
	probed := []int{0, 1, 124, 125, 248, 249}
	for _, i := range probed {
		o.echo("tcp", fmt.Sprintf(":%d", 20000+i))
	}
	far := netip.MustParseAddr(o.far())
	c := &crowd{lab: l, dir: filepath.Dir(netlab.Leaf(t, "first").Path())}
	t.Cleanup(c.remove)
	own := func(i int, port uint16) lease.Policy {
		p := lease.Policy{Egress: lease.Rules, Rules: []lease.Rule{
			{To: netip.PrefixFrom(far, 32), First: port, Last: port, Protocol: lease.TCP}}}
		for j := range each - 1 {
			a := netip.AddrFrom4([4]byte{10, byte(i), 0, byte(2 * j)}) // no two of them touch
			p.Rules = append(p.Rules, lease.Rule{To: netip.PrefixFrom(a, 32), First: 443, Last: 443, Protocol: lease.TCP})
		}
		return p
	}
	for i := range boxes {
		c.verdicts = append(c.verdicts, lease.Verdict{Leaf: c.make(i), Number: uint16(i + 1),
			Address: netip.AddrFrom4([4]byte{127, 65, 1, byte(i)}), Policy: own(i, uint16(20000+i))})
	}
	if n := l.table.Elements(c.verdicts); n != boxes*each {
		t.Fatalf("%d elements, want %d", n, boxes*each)
	}
	l.must(l.table.Refill(l.ctx(), c.verdicts))
	reaches := func(box, port int, want bool) {
		t.Helper()
		if out := c.dial(box, "", "tcp", fmt.Sprintf("%s:%d", o.far(), 20000+port)); out.OK() != want {
			t.Errorf("box %d, the port of box %d: %v, want %v", box, port, out, want)
		}
	}
	for _, box := range probed {
		for _, port := range probed {
			reaches(box, port, box == port)
		}
	}
	c.verdicts[125].Policy = own(125, 20249)
	c.verdicts[125].Generation = 1
	l.must(l.table.Put(l.ctx(), c.verdicts[125]))
	reaches(125, 125, false)
	reaches(125, 249, true)
	reaches(124, 124, true)
	reaches(249, 249, true)
	l.same(l.table, c.verdicts)
}
