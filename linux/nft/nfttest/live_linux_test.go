package nfttest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/verify/netlab"
)

// A live allowed flow goes on through refills and changes of other boxes; nothing that is not allowed
// gets through meanwhile.
func TestRefillKeepsFlows(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	o.echo("tcp", ":8000")
	var sink int
	o.do(func() { sink = udp(t, 8001) })
	b, closed := l.box(allow(t, o.far()+" 8000 tcp")), l.box(deny())
	talker := netlab.Start(t, netlab.Spawn{Leaf: b.FD()}, "talk", o.far()+":8000")
	flood := netlab.Start(t, netlab.Spawn{Leaf: closed.FD()}, "flood", o.far()+":8001")
	flood.Line()
	for i := range 60 {
		l.run("nft", "add chain inet minhost mine") // or there is nothing to do
		l.must(l.table.Refill(l.ctx(), verdicts(b, closed)))
		if i%10 == 0 {
			if line := talker.Line(); line != "ok" {
				t.Fatalf("refill %d: %s", i, line)
			}
		}
	}
	if n := strings.TrimSpace(flood.Stop()); n == "0" {
		t.Error("the flood sent nothing")
	}
	if n := drain(sink); n != 0 {
		t.Errorf("%d datagrams of a deny-all box arrived during refills", n)
	}
}

// Changed tells what others do to our table, and nothing that we do or that is done to other tables.
func TestChanged(t *testing.T) {
	l := newLab(t)
	told := func() bool {
		select {
		case <-l.table.Changed():
			return true
		case <-time.After(300 * time.Millisecond):
			return false
		}
	}
	b := l.box(deny())
	l.must(l.table.Refill(l.ctx(), verdicts(b)))
	l.run("nft", "add table inet other; add chain inet other o; delete table inet other")
	l.dial(b, "tcp", "127.0.0.1:1") // packets change dynamic sets
	if told() {
		t.Error("told of our own changes, or of other tables'")
	}
	for _, change := range []string{"flush ruleset", "delete table inet minhost", "flush set inet minhost answerer4",
		"insert rule inet minhost box_out accept", "add chain inet minhost mine"} {
		l.must(l.table.Refill(l.ctx(), verdicts(b)))
		l.run("nft", change)
		if !told() {
			t.Errorf("%s: not told", change)
		}
		if told() {
			t.Errorf("%s: told twice", change)
		}
	}
}

// Delete takes the conntrack entries of all flows of the box with it, and nobody else's.
func TestDeleteConntrack(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	p := openEgress()
	p.Ingress = lease.FromAny
	b, other := l.box(p), l.box(p)
	o.echo("udp", ":8000")
	for i, x := range []*box{b, other} {
		at, _ := netlab.EchoIn(t, netlab.Spawn{Leaf: x.FD()}, "udp", fmt.Sprintf(":%d", 4000+i), 0)
		l.reaches(x, "udp", o.far()+":8000")
		l.reaches(x, "udp", "127.0.0.1:"+port(at))
		l.dial(x, "tcp", "127.0.0.1:15353")
		if out := o.dial(netlab.Dial{Network: "udp", Address: fmt.Sprintf("%s:%d", o.near(), 4000+i)}); !out.OK() {
			t.Error(out)
		}
	}
	closed := l.box(deny())
	l.dial(closed, "udp", "127.0.0.1:9")
	if (netlab.Dial{Network: "udp", Address: o.far() + ":8000"}.Do()).Errno != 0 {
		t.Error("host")
	}
	count := func(number uint16) (n int) {
		for _, mark := range []uint32{0x30000000, 0x20000000} {
			n += strings.Count(l.run("conntrack", "-L"), fmt.Sprintf("mark=%d ", mark|uint32(number)))
		}
		return n
	}
	host := strings.Count(l.run("conntrack", "-L"), "mark=0 ")
	if count(1) != 3 || count(2) != 3 || count(3) != 0 || host == 0 {
		t.Fatalf("entries: %d, %d, %d, host %d\n%s", count(1), count(2), count(3), host, l.run("conntrack", "-L"))
	}
	l.must(l.table.Delete(l.ctx(), b.Verdict))
	l.must(l.table.Delete(l.ctx(), closed.Verdict))
	if count(1) != 0 || count(2) != 3 || count(3) != 0 || strings.Count(l.run("conntrack", "-L"), "mark=0 ") != host {
		t.Errorf("entries after: %d, %d, %d", count(1), count(2), count(3))
	}
	for _, set := range []string{"flows", "lookups"} { // the box that is left
		if out := l.run("nft", "list", "set", "inet", "minhost", set); strings.Count(out, "minhost/boxes/") != 1 || !strings.Contains(out, other.Name()) {
			t.Errorf("%s: %s", set, out)
		}
	}
}

// 20,000 elements go in as one batch, and are read back.
func TestManyElements(t *testing.T) {
	l := newLab(t)
	var boxes []lease.Verdict
	for i := range 20 {
		p := lease.Policy{Egress: lease.Rules}
		for j := range 1000 {
			a := netip.AddrFrom4([4]byte{10, byte(i), byte(j >> 7), byte(j << 1)})
			p.Rules = append(p.Rules, lease.Rule{To: netip.PrefixFrom(a, 32), First: 443, Last: 443, Protocol: lease.TCP})
		}
		boxes = append(boxes, lease.Verdict{Leaf: uint64(1<<40 + i), Number: uint16(1000 + i), Policy: p})
	}
	if n := l.table.Elements(append(boxes, boxes...)); n != 20000 {
		t.Errorf("%d elements, want 20000", n)
	}
	again := slices.Clone(boxes)
	for i := range again {
		again[i].Policy.Rules = slices.Clone(boxes[i].Policy.Rules)
		for j := range again[i].Policy.Rules {
			again[i].Policy.Rules[j].First, again[i].Policy.Rules[j].Last = 80, 80
		}
	}
	one := slices.Clone(boxes)
	one[0].Policy = again[0].Policy
	for _, step := range []struct {
		what string
		all  []lease.Verdict
	}{{"all new", boxes}, {"nothing to do", boxes}, {"one box of twenty", one}, {"every element", again}, {"back", boxes}} {
		start := time.Now()
		l.must(l.table.Refill(l.ctx(), step.all))
		t.Logf("%s: %v", step.what, time.Since(start))
		l.same(l.table, step.all)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := l.table.Refill(ctx, boxes); err == nil {
		t.Error("a deadline of a millisecond was kept")
	}
	l.must(l.table.Put(l.ctx(), boxes[0]))
	l.same(l.table, boxes)
}

// The nft program of this machine can list the table: it aborts the whole listing on what it does not
// understand (1.0.6 on a key that begins with a map's value).
func TestListing(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	b := mixed(t, l)[0]
	l.dial(b, "tcp", o.far()+":80") // fills the dynamic sets
	text := l.run("nft", "list", "ruleset")
	for _, want := range []string{
		`socket cgroupv2 level 2 "minhost/boxes" goto box_out`,
		`"minhost/boxes/` + b.Name() + `" . 0x20000001`,
		`ct original ip daddr . meta l4proto . ct original proto-dst @allow4 goto approve`,
		`10.1.0.0/16 . udp . 53`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}
