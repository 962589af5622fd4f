package bench

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/e2e/rig"
	"github.com/gominimal/minhost/verify/netlab"
)

func TestMain(m *testing.M) {
	os.Exit(rig.Main(m, nil, netlab.Children{"connects": connectsChild, "held": heldChild}))
}

// spread are the times of single operations.
type spread []time.Duration

func (s spread) at(q float64) time.Duration {
	slices.Sort(s)
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

func (s spread) mean() time.Duration {
	var sum time.Duration
	for _, d := range s {
		sum += d
	}
	return sum / time.Duration(len(s))
}

// report adds the quantiles to a benchmark's line, in microseconds.
func (s spread) report(b *testing.B, name string) {
	if len(s) == 0 {
		return
	}
	for _, q := range []struct {
		name string
		q    float64
	}{{"p50", .5}, {"p99", .99}} {
		b.ReportMetric(float64(s.at(q.q).Nanoseconds())/1000, fmt.Sprintf("us/%s-%s", name, q.name))
	}
}
