package nfttest

import (
	"errors"
	"net/netip"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/nft"
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
		"added element": func() string { return "add element inet minhost innone { \"minhost/boxes/" + boxes[0].Name() + "\" }" },
		"deleted rule":  func() string { return "delete rule inet minhost box_known handle " + handle("box_known", "@flows") },
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
			return "delete table inet minhost; add table inet minhost; add set inet minhost innone { type ipv4_addr; }"
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

// Eight callers at once, while somebody flushes: every call succeeds, and the table holds what is left.
func TestConcurrent(t *testing.T) {
	l := newLab(t)
	l.must(l.table.Refill(l.ctx(), nil))
	policies := []lease.Policy{deny(), openEgress(), allow(t, "10.0.0.0/8 443 tcp"), allow(t, "10.0.0.0/8 443 tcp", "::/0 udp")}
	ctx := l.ctx()
	var wg sync.WaitGroup
	var left []lease.Verdict
	for w := range 8 {
		v := lease.Verdict{Leaf: uint64(1<<40 + w), Number: uint16(w + 1), Policy: policies[w%len(policies)]}
		if w%2 == 0 {
			left = append(left, v)
		}
		wg.Go(func() {
			for i := range 10 {
				change := v
				change.Policy = policies[(w+i)%len(policies)]
				if err := errors.Join(l.table.Put(ctx, change), l.table.Delete(ctx, change), l.table.Put(ctx, change), l.table.Put(ctx, v)); err != nil {
					t.Error(err)
				}
			}
			if w%2 == 1 {
				if err := l.table.Delete(ctx, v); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for range 5 {
			time.Sleep(20 * time.Millisecond)
			if out, err := exec.Command("nft", "flush ruleset").CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}
	})
	wg.Wait()
	l.must(l.table.Refill(ctx, left)) // a flush may have come last
	l.same(l.table, left)
}
