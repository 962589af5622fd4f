package localhosttest

import (
	"testing"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/verify/netlab"
)

func callsChild([]string) int { return 0 }

func TestFirst(t *testing.T) {
	tree := netlab.Tree(t)
	s := set(t, tree, nil)
	want(t, s, installer.Absent)
	if err := s.Apply(); err != nil {
		t.Fatal(err)
	}
	want(t, s, installer.Satisfied)
}

func TestTwoBoxes(t *testing.T) {
	w := newTown(t)
	a, b := w.box(1, nil), w.box(2, nil)
	for _, x := range []struct{ net, bind string }{
		{"tcp", "0.0.0.0:3000"}, {"tcp", "127.0.0.1:3000"}, {"tcp", "[::]:3000"}, {"tcp", "[::1]:3000"}, {"udp", "127.0.0.1:3000"}, {"udp", "0.0.0.0:3000"},
	} {
		var ps []*netlab.Proc
		for i, leaf := range []int{a, b} {
			at, p := netlab.EchoIn(t, netlab.Spawn{Leaf: leaf, UID: 1000}, x.net, x.bind, 0)
			t.Log(x, i, at)
			ps = append(ps, p)
			_ = p
		}
		for _, to := range []string{"127.0.0.1:3000", "[::1]:3000", "127.0.64.1:3000", "127.0.64.2:3000"} {
			d := netlab.Dial{Network: x.net, Address: to}
			t.Log(x, to, d.From(t, a), d.From(t, b), d.From(t, netlab.NoLeaf))
		}
		// end
		for _, p := range ps {
			p.Kill()
		}
	}
}
