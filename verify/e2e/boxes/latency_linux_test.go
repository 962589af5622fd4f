package boxes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/netlab"
)

// BenchmarkRefusal measures a blocking connect of a deny-all box until it is refused. p99 is to be
// under 1 ms (DESIGN section 10).
func BenchmarkRefusal(b *testing.B) {
	h := newHost(b)
	netlab.Echo(h, "tcp", "127.0.0.1:8098", 0)
	netlab.Echo(h, "tcp", "[::1]:8098", 0)
	o := h.outside()
	box := h.box("bench", denyPolicy())
	for name, d := range map[string]netlab.Dial{
		"loopback":  {Network: "tcp", Address: "127.0.0.1:8098"},
		"loopback6": {Network: "tcp", Address: "[::1]:8098"},
		"elsewhere": {Network: "tcp", Address: atPort(o.far4(), 8098)},
		"datagram":  {Network: "udp", Address: "127.0.0.1:8098"},
	} {
		b.Run(name, func(b *testing.B) {
			var all []time.Duration
			for len(all) < b.N {
				all = append(all, ask[[]time.Duration](box.agent, "latency", latency{d, min(b.N-len(all), 1000)})...)
			}
			slices.Sort(all)
			for _, p := range []int{50, 99} {
				b.ReportMetric(float64(all[len(all)*p/100].Microseconds()), fmt.Sprintf("p%d-us", p))
			}
		})
	}
}

type latency struct {
	Dial netlab.Dial
	N    int
}

// refusals times refused attempts.
func refusals(in latency) (took []time.Duration, err error) {
	for range in.N {
		start := time.Now()
		o := in.Dial.Do()
		if o.OK() {
			return nil, fmt.Errorf("%s %s was not refused", in.Dial.Network, in.Dial.Address)
		}
		took = append(took, time.Since(start))
	}
	return took, nil
}
