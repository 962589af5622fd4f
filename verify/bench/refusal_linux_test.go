package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/verify/e2e/rig"
	"github.com/gominimal/minhost/verify/netlab"
)

// connectsChild makes blocking connects to one address and prints how long each took, as JSON.
func connectsChild(args []string) int {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return 2
	}
	var took []time.Duration
	for range n {
		errno, d := netlab.Connect("tcp4", args[0])
		if args[2] != errno.Error() {
			fmt.Fprintf(os.Stderr, "%s: %v, want %s\n", args[0], errno, args[2])
			return 1
		}
		took = append(took, d)
	}
	if err := json.NewEncoder(os.Stdout).Encode(took); err != nil {
		return 1
	}
	return 0
}

// BenchmarkRefusal is DESIGN.md section 10's "refusal of a blocking connect", p99 at most 1 ms, next to
// a connect to a closed port from outside: the kernel's own refusal.
func BenchmarkRefusal(b *testing.B) {
	rig.Install(b)
	defer rig.Undo(b)
	listener := netlab.Echo(b, "tcp4", "127.0.0.1:0", 0)
	c := dial(b)
	defer c.Close()
	box := newBox(b, c, api.Policy{Egress: api.EgressDeny})
	measure := func(s netlab.Spawn, address string) spread {
		var took spread
		out := netlab.Start(b, s, "connects", address, strconv.Itoa(b.N), "connection refused").Stop()
		if err := json.Unmarshal([]byte(out), &took); err != nil {
			b.Fatalf("%v: %q", err, out)
		}
		return took
	}
	refused := measure(netlab.Spawn{Leaf: box.leaf}, listener)
	kernel := measure(netlab.Spawn{Leaf: netlab.NoLeaf}, "127.0.0.1:9")
	refused.report(b, "refused")
	kernel.report(b, "closed-port")
	b.ReportMetric(float64(refused.at(.5))/float64(kernel.at(.5)), "x-closed-port")
	box.end(context.Background())
}
