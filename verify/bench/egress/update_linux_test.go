package egress

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/cut"
	"github.com/gominimal/minhost/linux/nft"
)

// BenchmarkEgressUpdate is a new policy of a box as the helper makes it live: table, live flows, table; and
// the table's part of its end.
func BenchmarkEgressUpdate(b *testing.B) {
	l := newLab(b)
	box := l.box(list(10))
	l.fill(b, 250, box)
	c, err := cut.New(nft.Marks{}, slog.New(slog.DiscardHandler))
	l.must(err)
	defer c.Close()
	ctx := context.Background()
	var update, end []float64
	since := func(start time.Time) float64 { return float64(time.Since(start).Microseconds()) }
	for i := range 200 {
		v := box.verdict
		v.Policy, v.Cutting, v.Generation = list(10+i%2), true, uint8(i%2)
		start := time.Now()
		l.must(l.table.Put(ctx, v))
		_, err := c.Cut(ctx, v, []uint64{v.Leaf}, lease.Place{}, func(uint64) uint16 { return 0 })
		l.must(err)
		v.Cutting = false
		l.must(l.table.Put(ctx, v))
		update = append(update, since(start))
		start = time.Now()
		l.must(l.table.Delete(ctx, v))
		end = append(end, since(start))
	}
	for name, took := range map[string][]float64{"update": update, "delete": end} {
		b.ReportMetric(at(took, .5), "us/"+name+"-p50")
		b.ReportMetric(at(took, .99), "us/"+name+"-p99")
	}
	b.ReportMetric(0, "ns/op")
}
