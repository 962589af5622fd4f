package boxes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
)

// TestFaultPoints ends the helper before each change that it makes of the host, in each operation, and has its
// successor take over.
func TestFaultPoints(t *testing.T) {
	f := newFaulty(t)
	b := f.bystanders()
	total, missed := 0, 0
	for _, name := range slices.Sorted(maps.Keys(operations())) {
		o := operations()[name]
		points := f.pointsOf(o, b)
		t.Logf("%s: %d points: %q", name, len(points), points)
		for _, point := range points {
			if !f.fresh(point) {
				continue
			}
			r := f.ready(o)
			f.arm(only(point, "exit"))
			err := o.do(r)
			if !f.dead(5 * time.Second) {
				t.Logf("%s: %q was not reached: %v", name, point, err)
				if !needsFlow(point) {
					missed++
				}
			}
			f.disarm()
			f.kill()
			f.start()
			r.settled(b)
			if t.Failed() {
				t.Fatalf("%s, killed at %q", name, point)
			}
			total++
		}
		b.keep.whole()
	}
	if missed > 3 {
		t.Errorf("%d points were not reached", missed)
	}
	if total < 60 {
		t.Errorf("only %d points: something does not ask the gate any more", total)
	}
	p := b.prober.probed()
	t.Logf("%d points; the prober tried %d times", total, p.Attempts)
	if p.Attempts < total {
		t.Error("the prober hardly tried")
	}
	f.proberSees()
	f.verified()
}

// needsFlow says that a change is made at the end of a box only while it has a connection: the prober has
// one at some moments.
func needsFlow(point string) bool {
	return strings.HasPrefix(point, "table put") || strings.HasPrefix(point, "flows cut")
}

// pointsOf runs an operation whole.
func (f *faulty) pointsOf(o operation, b bystanders) []string {
	f.Helper()
	r := f.ready(o)
	f.arm(func(string) string { return "" })
	f.must(o.do(r))
	f.quiet()
	points := f.disarm()
	if o.bare {
		f.must(r.c.Close())
	}
	r.settled(b)
	return points
}

// proberSees: the prober would have told.
func (f *faulty) proberSees() {
	f.Helper()
	b := f.box("", openPolicy())
	a := f.prober(closedDoor)
	_, _, err := b.c.Join(f.ctx(), api.JoinIn{Lease: b.plan.Lease, Secret: b.plan.Secret, Kind: api.JoinKindTask, PID: a.PID()}, nil)
	f.must(err)
	f.within(10*time.Second, "a prober in an open box gets through", func() error {
		if p := a.probed(); p.Reached == 0 {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})
	b.end()
}

// quiet waits for what goes on behind a reply, or without one: until no change comes for a while.
func (f *faulty) quiet() {
	f.Helper()
	for before, same := 0, 0; same < 2; {
		f.settle()
		f.mu.Lock()
		n := len(f.points)
		f.mu.Unlock()
		if same++; n != before || n == 0 {
			same = 0
		}
		before = n
	}
}
