package egress

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/verify/netlab"
)

// kinds of what is measured, with how often in one slice. A slice is short, so that many are not disturbed.
var kinds = []struct {
	name string
	n    int
}{{"send", 1000}, {"connect", 50}}

// sizes of the table, in boxes.
var sizes = []int{1, 250, 10000}

const (
	rounds = 4  // through all sizes
	turns  = 60 // of each sender in a round
)

// BenchmarkEgress is DESIGN.md section 10's "packets per second of a box, against no rules with connection
// tracking on". All senders take turns, and so do the sizes of the table: what slows this machine for a
// while slows all of them. Each slice is compared with the slice without rules of the same turn, by the
// processor's time for a packet and by the time that passed; the median of these ratios counts.
func BenchmarkEgress(b *testing.B) {
	l := newLab(b)
	bare, linear, full := apart(b), apart(b), here(b)
	bare.do(b, func() { load(b, tracking) })
	linear.do(b, func() { load(b, l.linear(250)) })
	open, ten, thousand := l.box(lease.Policy{Egress: lease.Open}), l.box(list(10)), l.box(list(1000))
	all := map[string][]*sender{}
	for _, k := range kinds {
		all[k.name] = []*sender{
			bare.start(b, netlab.NoLeaf, "none", k.name), full.start(b, netlab.NoLeaf, "node", k.name), full.start(b, open.fd, "open", k.name),
			full.start(b, ten.fd, "rules10", k.name), full.start(b, thousand.fd, "rules1000", k.name), linear.start(b, netlab.NoLeaf, "linear250", k.name)}
	}
	refused := full.start(b, ten.fd, "refused", "refused")
	took := map[int][]float64{}
	for range rounds {
		for _, size := range sizes {
			l.fill(b, size, open, ten, thousand)
			for _, k := range kinds {
				for range turns {
					for _, s := range all[k.name] {
						s.slice(b, size, k.n)
					}
				}
			}
			took[size] = append(took[size], refused.ask(b, 200)...)
		}
	}
	for _, k := range kinds {
		b.Log("\n" + table(k.name, all[k.name]))
		report(b, k.name, all[k.name])
	}
	for _, size := range sizes {
		b.Logf("refused connect, %d boxes: p50 %.0f us, p99 %.0f us", size, at(took[size], .5)/1000, at(took[size], .99)/1000)
		b.ReportMetric(at(took[size], .99)/1000, fmt.Sprintf("us/refused-p99-%d", size))
	}
	b.ReportMetric(0, "ns/op")
}

// ratio is how many packets a sender sends while the first one sends one.
func ratio(base, s *sender, size int, of func(*sender, int) []float64) float64 {
	each := slices.Clone(of(base, size))
	for i, other := range of(s, size) {
		each[i] /= other
	}
	return at(each, .5)
}

func cpu(s *sender, size int) []float64  { return s.cpu[size] }
func wall(s *sender, size int) []float64 { return s.wall[size] }

// table shows the ratios: processor time, and in parentheses time that passed.
func table(kind string, all []*sender) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%-10s", kind)
	for _, size := range sizes {
		fmt.Fprintf(&out, "%10d boxes ", size)
	}
	for _, s := range all {
		fmt.Fprintf(&out, "\n%-10s", s.name)
		for _, size := range sizes {
			fmt.Fprintf(&out, "   %.3f (%.3f)", ratio(all[0], s, size, cpu), ratio(all[0], s, size, wall))
		}
	}
	fmt.Fprintf(&out, "\nno rules: %.2f us of the processor each", at(cpu(all[0], sizes[0]), .5)/1000)
	return out.String()
}

// report gives the ratios at 250 boxes as metrics, and of 10,000 boxes to one.
func report(b *testing.B, kind string, all []*sender) {
	for _, s := range all[1:] {
		b.ReportMetric(ratio(all[0], s, 250, cpu), "x-"+kind+"-"+s.name)
		if s.name != "linear250" {
			b.ReportMetric(ratio(all[0], s, 10000, cpu)/ratio(all[0], s, 1, cpu), "flat-"+kind+"-"+s.name)
		}
	}
}
