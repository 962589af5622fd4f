package nfttest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/verify/netlab"
)

// A flow that was approved once is not judged again under the same policy, but from the first packet on
// under the next one, before anything was cut; and what that one admits is approved for good again.
func TestGeneration(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	o.echo("udp", ":8000")
	o.echo("udp", ":8001")
	o.echo("tcp", ":8000")
	b := l.box(allow(t, o.far()+" 8000-8001 udp", o.far()+" 8000 tcp"))
	holder := netlab.Start(t, netlab.Spawn{Leaf: b.FD()}, "hold", "udp "+o.far()+":8000", "udp "+o.far()+":8001", "tcp "+o.far()+":8000")
	if line := holder.Line(); line != "ready" {
		t.Fatal(line)
	}
	says := func(want string) {
		t.Helper()
		holder.Say("how")
		if got := holder.Line(); got != want {
			t.Errorf("flows: %s, want %s", got, want)
		}
	}
	marked := func(generation uint32) int {
		return strings.Count(l.run("conntrack", "-L"), fmt.Sprintf("mark=%d ", 0x30000000|generation|uint32(b.Number)))
	}
	says("ok ok ok")
	if n := marked(0); n != 3 {
		t.Fatalf("%d flows are marked", n)
	}
	v := b.Verdict
	v.Policy, v.Generation = allow(t, o.far()+" 8000 udp"), 1
	l.must(l.table.Put(l.ctx(), v))
	says("ok EPERM ECONNRESET")
	p := allow(t, o.far()+" 8000 udp")
	l.tighten(l.cutter(), b, p)
	if n, old := marked(nft.DefaultMarks().Generation()), marked(0); n != 1 || old != 0 {
		t.Errorf("%d flows of the new generation, %d of the old one\n%s", n, old, l.run("conntrack", "-L"))
	}
	holder.Say("how")
	if got := holder.Line(); !strings.HasPrefix(got, "ok ") {
		t.Errorf("a flow that both admit: %s", got)
	}
}

// Flows that were not ended, for the cut behind an update failed, are not taken for those of the policy after the next,
// which has the generation that they began under.
func TestGenerationOfTheUncut(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	o.echo("udp", ":8000")
	o.echo("tcp", ":8000")
	b := l.box(openEgress())
	holder := netlab.Start(t, netlab.Spawn{Leaf: b.FD()}, "hold", "udp "+o.far()+":8000", "tcp "+o.far()+":8000")
	if line := holder.Line(); line != "ready" {
		t.Fatal(line)
	}
	v := b.Verdict
	for _, generation := range []uint8{1, 0} {
		v.Policy, v.Generation, v.Cutting = deny(), generation, true
		l.must(l.table.Put(l.ctx(), v))
		holder.Say("how")
		if got := holder.Line(); strings.Contains(got, "ok") {
			t.Errorf("generation %d: flows of the policy before: %s", generation, got)
		}
	}
}
