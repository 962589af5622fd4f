package nfttest

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/verify/netlab"
)

func verdicts(boxes ...*box) []lease.Verdict {
	var out []lease.Verdict
	for _, b := range boxes {
		out = append(out, b.Verdict)
	}
	return out
}

// same fails the test unless the kernel holds exactly these verdicts.
func (l *lab) same(table *nft.Table, all []lease.Verdict) {
	l.Helper()
	lines, err := table.Compare(l.ctx(), all)
	l.must(err)
	if len(lines) != 0 {
		l.Errorf("differs:\n%s", strings.Join(lines, "\n"))
	}
}

func mixed(t testing.TB, l *lab) []*box {
	p := openEgress()
	p.Ingress, p.IngressPorts = lease.FromPorts, []uint16{80, 81, 443}
	q := deny()
	q.Ingress, q.DenySubnets = lease.FromNone, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	rules := []string{"10.0.0.0/8 tcp", "10.1.0.0/16 53 udp", "2001:db8::/32 443 tcp", "192.0.2.1 any"}
	return []*box{l.box(deny()), l.box(p), l.box(q), l.box(allow(t, rules...)), l.box(allow(t, rules...))}
}

// Put and Delete leave exactly what Refill would, seen by another process too.
func TestCompare(t *testing.T) {
	l := newLab(t)
	boxes := mixed(t, l)
	other := open(t, l.tree)
	for _, table := range []*nft.Table{l.table, other} {
		l.same(table, verdicts(boxes...))
	}
	// Change every one to the policy of its neighbour, then take some out.
	for i, b := range boxes {
		b.Verdict.Policy = boxes[(i+1)%len(boxes)].Verdict.Policy
		l.must(l.table.Put(l.ctx(), b.Verdict))
		l.same(other, verdicts(boxes...))
	}
	l.must(l.table.Delete(l.ctx(), boxes[1].Verdict))
	l.must(l.table.Delete(l.ctx(), boxes[1].Verdict))
	rest := append(boxes[:1:1], boxes[2:]...)
	l.same(other, verdicts(rest...))
	lines, err := other.Compare(l.ctx(), verdicts(boxes...))
	if err != nil || len(lines) == 0 {
		t.Errorf("a leaf that is missing is no difference: %v, %v", lines, err)
	}
	l.must(l.table.Refill(l.ctx(), verdicts(rest...)))
	l.same(other, verdicts(rest...))
	l.must(l.table.Refill(l.ctx(), nil))
	l.same(other, nil)
}

// Whatever somebody does to the table is seen, and both Refill and Put repair it.
func TestDamage(t *testing.T) {
	l := newLab(t)
	boxes := mixed(t, l)
	all := verdicts(boxes...)
	handle := func(chain, has string) string {
		for _, line := range strings.Split(l.run("nft", "-a", "list", "chain", "inet", "minhost", chain), "\n") {
			if strings.Contains(line, has) {
				return regexp.MustCompile(`# handle (\d+)`).FindStringSubmatch(line)[1]
			}
		}
		t.Fatalf("no rule with %q in %s", has, chain)
		return ""
	}
	for name, damage := range map[string]func() string{
		"flushed set":   func() string { return "flush set inet minhost allow4" },
		"flushed map":   func() string { return "flush map inet minhost policyof" },
		"added element": func() string { return "add element inet minhost open { \"minhost/boxes/" + boxes[0].Name() + "\" }" },
		"deleted rule":  func() string { return "delete rule inet minhost box_known handle " + handle("box_known", "@open") },
		"added rule":    func() string { return "insert rule inet minhost box_out accept" },
		"flushed chain": func() string { return "flush chain inet minhost from_box" },
		"replaced rule": func() string {
			return "replace rule inet minhost refuse handle " + handle("refuse", "tcp reset") + " accept"
		},
		"policy":        func() string { return "chain inet minhost out { policy drop; }" },
		"added chain":   func() string { return "add chain inet minhost mine" },
		"added set":     func() string { return "add set inet minhost mine { type ipv4_addr; }" },
		"deleted table": func() string { return "delete table inet minhost" },
		"flushed all":   func() string { return "flush ruleset" },
		"emptied table": func() string { return "flush table inet minhost" },
		"different kind": func() string {
			return "delete table inet minhost; add table inet minhost; add set inet minhost open { type ipv4_addr; }"
		},
		"other priority": func() string {
			return "delete table inet minhost; add table inet minhost; add chain inet minhost out { type filter hook output priority 5; }"
		},
	} {
		t.Run(name, func(t *testing.T) {
			l.run("nft", damage())
			lines, err := l.table.Compare(l.ctx(), all)
			l.must(err)
			if len(lines) == 0 {
				t.Error("not seen")
			}
			l.must(l.table.Refill(l.ctx(), all))
			l.same(l.table, all)
		})
	}
	// A change of a leaf that the kernel lost repairs what it can't work without.
	l.run("nft", "flush ruleset")
	boxes[0].Verdict.Policy = openEgress()
	l.must(l.table.Put(l.ctx(), boxes[0].Verdict))
	l.same(l.table, verdicts(boxes...))
	l.run("nft", "flush map inet minhost lease")
	l.must(l.table.Delete(l.ctx(), boxes[0].Verdict))
	l.same(l.table, verdicts(boxes[1:]...))
}

// Probe looks at the structure, whatever boxes there are; Destroy takes the table and nothing else.
func TestProbeAndDestroy(t *testing.T) {
	l := newLab(t)
	l.run("nft", "add table inet other; add chain inet other in { type filter hook input priority 0; }; add rule inet other in counter; add set inet other minhost { type ipv4_addr; }; add table ip minhost")
	defer l.run("nft", "delete table inet other; delete table ip minhost")
	foreign := func() string {
		return l.run("nft", "-s", "list", "table", "inet", "other") + l.run("nft", "-s", "list", "table", "ip", "minhost")
	}
	before := foreign()
	probe := func(present bool, differ int) {
		t.Helper()
		ok, lines, err := l.table.Probe(l.ctx())
		if err != nil || ok != present || len(lines) != differ {
			t.Errorf("present %t, %v, %v; want %t and %d lines", ok, lines, err, present, differ)
		}
	}
	probe(true, 0)
	boxes := mixed(t, l)
	probe(true, 0)
	l.must(l.table.Delete(l.ctx(), boxes[0].Verdict))
	l.run("nft", "add rule inet minhost out accept")
	probe(true, 1)
	l.must(l.table.Refill(l.ctx(), verdicts(boxes[1:]...)))
	probe(true, 0)
	l.must(l.table.Destroy(l.ctx()))
	probe(false, 1)
	l.must(l.table.Destroy(l.ctx()))
	l.must(l.table.Put(l.ctx(), boxes[1].Verdict))
	l.same(l.table, verdicts(boxes[1]))
	if after := foreign(); after != before {
		t.Errorf("tables of others: %s\nwere %s", after, before)
	}
}

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
		for _, mark := range []uint32{0x10000000, 0x20000000} {
			n += strings.Count(l.run("conntrack", "-L"), fmt.Sprintf("mark=%d ", mark|uint32(number)))
		}
		return n
	}
	host := strings.Count(l.run("conntrack", "-L"), "mark=0 ")
	if count(1) != 3 || count(2) != 3 || count(3) != 1 || host == 0 {
		t.Fatalf("entries: %d, %d, %d, host %d\n%s", count(1), count(2), count(3), host, l.run("conntrack", "-L"))
	}
	l.must(l.table.Delete(l.ctx(), b.Verdict))
	l.must(l.table.Delete(l.ctx(), closed.Verdict))
	if count(1) != 0 || count(2) != 3 || count(3) != 0 || strings.Count(l.run("conntrack", "-L"), "mark=0 ") != host {
		t.Errorf("entries after: %d, %d, %d", count(1), count(2), count(3))
	}
	if out := l.run("nft", "list", "set", "inet", "minhost", "flows"); strings.Count(out, "minhost/boxes/") != 1 || !strings.Contains(out, other.Name()) {
		t.Errorf("counters of flows: %s", out) // the box that is left
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
