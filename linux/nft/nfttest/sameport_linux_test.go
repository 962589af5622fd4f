package nfttest

import (
	"testing"

	"github.com/gominimal/minhost/verify/netlab"
)

// The port of a UDP client that is gone is another box's within the 30 s that connection tracking
// remembers it: each box gets its answers, also one that came first and comes again.
func TestSamePortOfAnother(t *testing.T) {
	l := newLab(t)
	l.belt()
	o := newOutside(l)
	o.echo("udp", ":8000")
	first, second, listed, closed := l.box(openEgress()), l.box(openEgress()), l.box(allow(t, o.far()+" 8000 udp")), l.box(deny())
	dial := func(b *box) netlab.Outcome {
		return netlab.Dial{Network: "udp", Address: o.far() + ":8000", Local: o.near() + ":7777"}.From(t, b.FD())
	}
	for i, b := range []*box{first, second, listed, first, listed} {
		if out := dial(b); !out.OK() {
			t.Errorf("turn %d: %v", i, out)
		}
		if out := dial(closed); out.OK() {
			t.Errorf("behind turn %d a deny-all box has the flow of another: %v", i, out)
		}
	}
}
