package nfttest

import (
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/netlab"
)

// TestTimedRuleEndsByItself: the kernel drops a rule at its end though nobody tells it to, new flows and
// those that began before; what another rule allows goes on. Nothing about it is a difference, neither
// before nor after, and nobody is told of a change.
func TestTimedRuleEndsByItself(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	o.echo("tcp", ":8000")
	o.echo("tcp", ":8001")
	o.echo("udp", ":8000")
	p := allow(t, o.far()+" 8001 tcp", "fd99::/16 8000 tcp", o.far()+" 8000 tcp", o.far()+" 8000 udp", "10.0.0.0/8 8001 tcp")
	end := time.Now().Add(5 * time.Second).UTC().Truncate(time.Millisecond)
	for i := 1; i < len(p.Rules); i++ {
		p.Rules[i].Until = end
	}
	b := l.box(p)
	holder := netlab.Start(t, netlab.Spawn{Leaf: b.FD()}, "hold", "tcp "+o.far()+":8000", "tcp "+o.far()+":8001", "udp "+o.far()+":8000")
	says := func(want string) {
		t.Helper()
		holder.Say("how")
		if got := holder.Line(); got != want {
			t.Errorf("flows: %s, want %s", got, want)
		}
	}
	if line := holder.Line(); line != "ready" {
		t.Fatal(line)
	}
	says("ok ok ok")
	l.reaches(b, "udp", o.far()+":8000")
	l.same(l.table, verdicts(b))
	if out := l.run("nft", "list", "set", "inet", "minhost", "allow4"); strings.Count(out, `comment "until `) != 4 || !strings.Contains(out, "expires") {
		t.Errorf("elements with an end: %s", out)
	}
	if time.Now().After(end) {
		t.Fatal("the machine took 5 s to start a process")
	}
	for time.Now().Before(end.Add(20 * time.Millisecond)) { // timers of the kernel count in jiffies
		time.Sleep(5 * time.Millisecond)
	}
	for _, network := range []string{"tcp", "udp"} {
		l.refused(b, network, o.far()+":8000")
	}
	l.reaches(b, "tcp", o.far()+":8001")
	l.same(l.table, verdicts(b))
	l.must(l.table.Refill(l.ctx(), verdicts(b)))
	select {
	case <-l.table.Changed():
		t.Error("told of a change")
	case <-time.After(200 * time.Millisecond):
	}
	says("ECONNRESET ok EPERM")
	// The same without the ended rules, as a helper writes it.
	left, _ := b.Policy.At(time.Now())
	b.Policy = left
	l.must(l.table.Put(l.ctx(), b.Verdict))
	l.same(l.table, verdicts(b))
}
