package nfttest

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/verify/netlab"
)

// TestRunners: what sockets below node send and receive is counted, by account, to other hosts and over loopback; it
// is the node's too, nobody else's, and judged by nothing. A process that takes the table over goes on with the
// counts. Where there is no node no rule looks for one.
func TestRunners(t *testing.T) {
	l := newLab(t)
	if rules := l.run("nft", "list", "table", "inet", "minhost"); strings.Contains(rules, "node") {
		t.Errorf("runners that nobody asked for: %s", rules)
	}
	l.belt()
	o := newOutside(l)
	o.echo("udp", ":8000")
	here := netlab.Echo(t, "udp", "127.0.0.1:0", 0)
	box := l.box(deny())
	node, err := l.tree.MakeRunner(1000)
	l.must(err)
	_, err = l.tree.MakeRunner(1001)
	l.must(err)
	t.Cleanup(func() { l.must(l.tree.RemoveRunners()) })
	l.must(l.table.CountRunners(l.ctx(), node))
	l.same(l.table, verdicts(box))
	runner, err := os.Open(l.tree.Path() + "/node/1000")
	l.must(err)
	defer runner.Close()
	hold := func(leaf int) func() {
		p := netlab.Start(t, netlab.Spawn{Leaf: leaf}, "hold", "udp "+o.far()+":8000", "udp "+here)
		p.Line()
		return func() {
			p.Say("how")
			if got := p.Line(); got != "ok ok" {
				t.Fatalf("flows: %s", got)
			}
		}
	}
	mine, hosts := hold(int(runner.Fd())), hold(netlab.NoLeaf)
	counts := func(table *nft.Table) (byUID map[uint32]lease.Traffic, node lease.Traffic) {
		t.Helper()
		p, err := table.Traffic(l.ctx())
		l.must(err)
		accounts, err := l.tree.Runners()
		l.must(err)
		byUID = map[uint32]lease.Traffic{}
		for group, uid := range accounts {
			byUID[uid] = p.Runners[group]
		}
		return byUID, p.Node
	}
	before, whole := counts(l.table)
	for range 3 {
		mine()
	}
	hosts()
	const octets = 20 + 8 + 1
	six := lease.Traffic{SentPackets: 6, SentBytes: 6 * octets, ReceivedPackets: 6, ReceivedBytes: 6 * octets}
	got, all := counts(l.table)
	if want := before[1000].Plus(six); got[1000] != want || got[1001] != (lease.Traffic{}) || len(got) != 2 {
		t.Errorf("counted %+v, want %+v of 1000", got, want)
	}
	if all.SentPackets < whole.SentPackets+8 || all.ReceivedPackets < whole.ReceivedPackets+8 {
		t.Errorf("of the node %+v, before %+v", all, whole)
	}
	l.refused(box, "udp", o.far()+":8000")
	boxes, err := l.tree.BoxesID()
	l.must(err)
	next, err := nft.New(nft.Config{Boxes: boxes, Level: l.tree.Level(), Node: node}, slog.New(slog.DiscardHandler))
	l.must(err)
	defer next.Close()
	l.must(next.Refill(l.ctx(), verdicts(box)))
	mine()
	if again, _ := counts(next); again[1000].SentPackets != got[1000].SentPackets+2 {
		t.Errorf("behind another process: %+v, before %+v", again, got)
	}
	if listed := l.run("nft", "list", "table", "inet", "minhost"); !strings.Contains(listed, "set nodesent") {
		t.Errorf("not listed: %s", listed)
	}
	l.must(next.Refill(l.ctx(), nil))
}
