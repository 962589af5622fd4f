package nfttest

import (
	"testing"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/verify/netlab"
)

// Each datagram of a box is counted once on its way out and its answer once on its way in, whichever rule
// lets them pass; a new policy and another process that takes the table over lose nothing, and what a box
// counted stays with the cohort when it ends. The host's own traffic is counted apart.
func TestTraffic(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	o.echo("udp", ":8000")
	here := netlab.Echo(t, "udp", "127.0.0.1:0", 0)
	served := l.box(lease.Policy{Egress: lease.Deny, Ingress: lease.FromAny})
	at, _ := netlab.EchoIn(t, netlab.Spawn{Leaf: served.FD()}, "udp", ":0", 0)
	b, quiet := l.box(allow(t, o.far()+" 8000 udp", here[:len("127.0.0.1")]+" "+port(here)+" udp")), l.box(deny())
	planes := func() lease.Planes {
		t.Helper()
		p, err := l.table.Traffic(l.ctx())
		l.must(err)
		return p
	}
	holder := netlab.Start(t, netlab.Spawn{Leaf: b.FD()}, "hold", "udp "+o.far()+":8000", "udp "+here)
	if line := holder.Line(); line != "ready" {
		t.Fatal(line)
	}
	says := func() {
		t.Helper()
		holder.Say("how")
		if got := holder.Line(); got != "ok ok" {
			t.Fatalf("flows: %s", got)
		}
	}
	const octets = 20 + 8 + 1
	before := planes()
	for range 5 {
		says()
	}
	got, want := planes(), before.Boxes[b.Leaf.ID()].Plus(lease.Traffic{SentPackets: 10, SentBytes: 10 * octets, ReceivedPackets: 10, ReceivedBytes: 10 * octets})
	if got.Boxes[b.Leaf.ID()] != want || got.Boxes[quiet.Leaf.ID()] != (lease.Traffic{}) {
		t.Errorf("box %+v, want %+v; quiet box %+v", got.Boxes[b.Leaf.ID()], want, got.Boxes[quiet.Leaf.ID()])
	}
	v := b.Verdict
	v.Generation = 1
	l.must(l.table.Put(l.ctx(), v))
	if got := planes().Boxes[b.Leaf.ID()]; got != want {
		t.Errorf("behind a new generation %+v, want %+v", got, want)
	}
	says()
	want = want.Plus(lease.Traffic{SentPackets: 2, SentBytes: 2 * octets, ReceivedPackets: 2, ReceivedBytes: 2 * octets})
	if got := planes().Boxes[b.Leaf.ID()]; got != want {
		t.Errorf("and one more %+v, want %+v", got, want)
	}

	node := planes().Node
	if out := o.dial(netlab.Dial{Network: "udp", Address: o.near() + ":" + port(at)}); !out.OK() {
		t.Fatal(out)
	}
	if got := planes(); got.Boxes[served.Leaf.ID()] != (lease.Traffic{SentPackets: 1, SentBytes: octets, ReceivedPackets: 1, ReceivedBytes: octets}) {
		t.Errorf("box that serves: %+v", got.Boxes[served.Leaf.ID()])
	}
	(netlab.Dial{Network: "udp", Address: o.far() + ":8000"}).From(t, netlab.NoLeaf)
	all := planes() // neighbour discovery is the host's too
	if n := all.Node; n.SentPackets <= node.SentPackets || n.ReceivedPackets <= node.ReceivedPackets ||
		n.SentBytes < node.SentBytes+octets || n.ReceivedBytes < node.ReceivedBytes+octets {
		t.Errorf("the host's own: %+v, want more than %+v", all.Node, node)
	}
	l.must(l.table.Delete(l.ctx(), v))
	if got := planes(); got.Cohort != all.Cohort || got.Boxes[b.Leaf.ID()] != (lease.Traffic{}) {
		t.Errorf("behind its end: %+v, before %+v", got, all)
	}
	l.same(l.table, verdicts(quiet, served)) // counters are no difference
}
