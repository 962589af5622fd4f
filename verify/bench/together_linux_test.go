package bench

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/verify/e2e/rig"
	"github.com/gominimal/minhost/verify/netlab"
)

// atOnce is how many runners start a box at the same time.
const atOnce = 4

// BenchmarkAttachTogether is Plan and Attach of four runners at once, each as long as it takes for itself, next
// to one alone in the same run.
func BenchmarkAttachTogether(b *testing.B) {
	rig.Install(b)
	defer rig.Undo(b)
	var conns [atOnce]*client.Client
	for i := range conns {
		conns[i] = dial(b)
		defer conns[i].Close()
	}
	var one, four spread
	for b.Loop() {
		one = append(one, together(b, conns[:1])...)
		four = append(four, together(b, conns[:])...)
	}
	one.report(b, "one")
	four.report(b, "four")
	ratio(b, four, one, "x-one")
}

// together starts a box on each connection at the same moment, and ends them.
func together(b *testing.B, conns []*client.Client) spread {
	took, plans, errs := make(spread, len(conns)), make([]api.PlanOut, len(conns)), make([]error, len(conns))
	begin := make(chan struct{})
	var work sync.WaitGroup
	for i, c := range conns {
		child := netlab.Start(b, netlab.Spawn{Leaf: netlab.NoLeaf}, "held")
		child.Line()
		defer child.Kill()
		work.Go(func() {
			<-begin
			start := time.Now()
			plans[i], errs[i] = c.Plan(b.Context(), api.PlanIn{Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny}})
			if errs[i] == nil {
				errs[i] = c.Attach(b.Context(), api.AttachIn{Lease: plans[i].Lease, PID: child.PID()}, nil)
			}
			took[i] = time.Since(start)
		})
	}
	close(begin)
	work.Wait()
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
	for i, c := range conns {
		if _, err := c.Teardown(context.Background(), api.TeardownIn{Lease: plans[i].Lease, Secret: plans[i].Secret, Kill: true}); err != nil {
			b.Fatal(err)
		}
	}
	return took
}
