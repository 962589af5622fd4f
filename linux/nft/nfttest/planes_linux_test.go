package nfttest

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/verify/netlab"
)

// planes puts a table with these in the place of the lab's.
func (l *lab) planes(p nft.Planes) {
	l.Helper()
	boxes, err := l.tree.BoxesID()
	l.must(err)
	t, err := nft.New(nft.Config{Boxes: boxes, Level: l.tree.Level(), Planes: p}, slog.New(slog.DiscardHandler))
	l.must(err)
	l.Cleanup(func() { t.Close() })
	l.must(t.Refill(l.ctx(), nil))
	l.table = t
}

// entry is what connection tracking knows of the flow to this port of the other host.
func (l *lab) entry(family, network string, port int) string {
	l.Helper()
	for line := range strings.Lines(l.run("conntrack", "-L", "-f", family, "-p", network)) {
		if strings.Contains(line, fmt.Sprintf("dport=%d ", port)) {
			return line
		}
	}
	l.Fatalf("no entry for port %d", port)
	return ""
}

// TestPlanes: flows of boxes and of the host carry their bits, each plane leaves from its address, and all else is as
// without planes. Without them no rule says any of it.
func TestPlanes(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	if rules := l.run("nft", "list", "table", "inet", "minhost"); strings.Contains(rules, "postrouting") || strings.Contains(rules, "snat") {
		t.Errorf("planes that nobody asked for: %s", rules)
	}
	four, six := fmt.Sprintf("10.99.%d.9", o.N), fmt.Sprintf("fd99:%d::9", o.N)
	dev := strings.Fields(l.run("ip", "-o", "-4", "addr", "show", "to", o.near()))[1]
	dev, _, _ = strings.Cut(dev, "@")
	l.run("ip", "addr", "add", four+"/24", "dev", dev)
	l.run("ip", "addr", "add", six+"/64", "dev", dev, "nodad", "preferred_lft", "0") // nobody takes it by himself
	t.Cleanup(func() {
		l.run("ip", "addr", "del", four+"/24", "dev", dev)
		l.run("ip", "addr", "del", six+"/64", "dev", dev)
	})
	const cohort, node = 0x00800000, 0x00400000
	l.planes(nft.Planes{Cohort: nft.Plane{Mark: cohort, Source4: netip.MustParseAddr(four), Source6: netip.MustParseAddr(six)}, Node: nft.Plane{Mark: node}})
	l.belt()
	open, listed, closed := l.box(openEgress()), l.box(allow(t, o.far()+" any", strings.Trim(o.far6(), "[]")+" any")), l.box(deny())
	for i, network := range []string{"tcp", "udp"} {
		for j, far := range []string{o.far(), o.far6()} {
			family, own, routed := "ipv4", four, o.near()
			if j == 1 {
				family, own, routed = "ipv6", six, strings.Trim(o.near6(), "[]")
			}
			for k, b := range []*box{open, listed, nil} {
				port := 8100 + 100*i + 10*j + k
				at := fmt.Sprintf("%s:%d", far, port)
				o.echo(network, fmt.Sprintf(":%d", port))
				mark, from := uint32(node), routed
				if b == nil {
					if d := (netlab.Dial{Network: network, Address: at}.Do()); !d.OK() {
						t.Errorf("host, %s %s: %v", network, at, d)
					}
				} else {
					l.reaches(b, network, at)
					l.refused(closed, network, at)
					mark, from = nft.DefaultMarks().Started(b.Number, 0)|cohort, own
				}
				if got := l.entry(family, network, port); !strings.Contains(got, fmt.Sprintf("mark=%d ", mark)) || !strings.Contains(got, "dst="+from+" ") {
					t.Errorf("%s %s: %swant mark %d, answers to %s", network, at, got, mark, from)
				}
			}
		}
	}
	at, _ := netlab.EchoIn(t, netlab.Spawn{Leaf: open.FD()}, "tcp", "127.0.0.1:0", 0)
	l.reaches(open, "tcp", at)
	l.refused(listed, "tcp", at)
	l.inherits(o) // a bit of ours is no other table's mark
	l.must(l.table.Delete(l.ctx(), open.Verdict))
	if n := countEntries(l, fmt.Sprintf("mark=%d ", nft.DefaultMarks().Started(open.Number, 0)|cohort)); n != 0 {
		t.Errorf("%d entries of the box are left", n)
	}
}

// TestPlaneClashes: bits that somebody else has are named before they are used.
func TestPlaneClashes(t *testing.T) {
	l := newLab(t)
	l.planes(nft.Planes{Node: nft.Plane{Mark: 0x00400000}})
	l.run("nft", "add table ip theirs; add chain ip theirs c { type filter hook output priority 0; }; add rule ip theirs c ct mark set 0x00400000")
	defer l.run("nft", "delete table ip theirs")
	if got, err := l.table.PlaneClashes(l.ctx()); err != nil || len(got) != 1 || !strings.Contains(got[0], "sets the mark bits 0x400000") {
		t.Errorf("%q, %v", got, err)
	}
}
