package egress

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/cut"
	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/verify/netlab"
)

// BenchmarkEgressUpdate is a new policy of a box as the helper makes it live: table, live flows, table; one
// that admits more, which is the table alone; and the table's part of a box's end.
func BenchmarkEgressUpdate(b *testing.B) {
	l := newLab(b)
	box := l.box(list(10))
	l.fill(b, 250, box)
	// Connection tracking is never empty on a host: without an entry the kernel looks at nothing.
	here(b).start(b, netlab.NoLeaf, "node", "send").ask(b, 1)
	c, err := cut.New(nft.Marks{}, slog.New(slog.DiscardHandler))
	l.must(err)
	defer c.Close()
	ctx := context.Background()
	var update, wider, end spent
	for i := range 200 {
		v := box.verdict
		v.Policy, v.Cutting, v.Generation = list(10+i%2), true, uint8(i%2)
		update.measure(func() {
			l.must(l.table.Put(ctx, v))
			_, err := c.Cut(ctx, v, []uint64{v.Leaf}, lease.Place{}, func(uint64) uint16 { return 0 })
			l.must(err)
			v.Cutting = false
			l.must(l.table.Put(ctx, v))
		})
		v.Policy = list(12)
		wider.measure(func() { l.must(l.table.Put(ctx, v)) })
		end.measure(func() { l.must(l.table.Delete(ctx, v)) })
	}
	update.report(b, "update")
	wider.report(b, "wider")
	end.report(b, "delete")
	b.ReportMetric(0, "ns/op")
}

// spent is how long calls took, and the processor's part: the kernel works inside of them.
type spent struct{ wall, cpu []float64 }

func (s *spent) measure(do func()) {
	start, cpu := time.Now(), processorTime()
	do()
	s.cpu = append(s.cpu, float64((processorTime() - cpu).Microseconds()))
	s.wall = append(s.wall, float64(time.Since(start).Microseconds()))
}

func (s *spent) report(b *testing.B, name string) {
	b.ReportMetric(at(s.wall, .5), "us/"+name+"-p50")
	b.ReportMetric(at(s.wall, .99), "us/"+name+"-p99")
	b.ReportMetric(at(s.cpu, .5), "cpu-us/"+name+"-p50")
}
