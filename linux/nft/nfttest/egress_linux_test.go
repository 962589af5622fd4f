package nfttest

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

var everywhere = []struct{ network, address string }{
	{"tcp", "127.0.0.1:0"}, {"udp", "127.0.0.1:0"}, {"tcp", "[::1]:0"}, {"udp", "[::1]:0"},
}

// A deny-all box, an unknown leaf and a process directly in boxes reach no service of the host; the
// host is untouched, and an open box reaches them all.
func TestDeny(t *testing.T) {
	l := newLab(t)
	closed, unknown, free := l.box(deny()), l.leaf(deny()), l.box(openEgress())
	boxes, err := l.tree.BoxesFD()
	l.must(err)
	for _, e := range everywhere {
		at := netlab.Echo(t, e.network, e.address, 0)
		l.refused(closed, e.network, at)
		l.refused(unknown, e.network, at)
		d := netlab.Dial{Network: e.network, Address: at}
		if o := d.From(t, boxes); o.OK() {
			t.Errorf("directly in boxes, %s %s: %v", e.network, at, o)
		}
		if o := d.From(t, netlab.NoLeaf); !o.OK() {
			t.Errorf("host, %s %s: %v", e.network, at, o)
		}
		l.reaches(free, e.network, at)
		if e.network == "tcp" {
			if o := l.dial(closed, e.network, at); o.Errno != unix.ECONNREFUSED || o.Step != "connect" {
				t.Errorf("%s: %v", at, o)
			}
		}
	}
}
