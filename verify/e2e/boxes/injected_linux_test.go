package boxes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/verify/netlab"
)

// TestClosedEverywhere closes the caller's connection while the helper is about to make each change of Plan and
// Attach: the lease is there or it is gone.
func TestClosedEverywhere(t *testing.T) {
	f := newFaulty(t)
	b := f.bystanders()
	attached, gone := 0, 0
	for _, name := range []string{"plan", "attach", "attach own_ip"} {
		o := operations()[name]
		for _, point := range f.pointsOf(o, b) {
			r := f.ready(o)
			call, hangUp := context.WithCancel(f.ctx())
			r.call = call
			reached := make(chan struct{})
			f.arm(func(p string) string {
				if p == point {
					hangUp()
					time.Sleep(20 * time.Millisecond) // the helper sees it meanwhile; if not, it is one of the other orders
					close(reached)
				}
				return ""
			})
			err := o.do(r)
			select {
			case <-reached:
			case <-time.After(5 * time.Second):
				t.Errorf("not reached: %v", err)
			}
			hangUp()
			r.c.Close() // the reply may have been there before the client saw the end of its context
			r.within(10*time.Second, fmt.Sprintf("%s, closed at %q: helper and kernel agree", name, point), r.agree)
			f.disarm()
			leases, lerr := f.leases()
			f.must(lerr)
			there := slices.ContainsFunc(leases, func(l api.LeaseInfo) bool { return l.Name == "faulted" })
			switch {
			case there && o.bare:
				t.Errorf("a plan outlived its connection: %+v", leases)
			case there:
				attached++
			default:
				gone++
			}
			if err == nil && !there && !o.bare {
				t.Error("the caller was told that the box is attached, and it is gone")
			}
			r.settled(b)
			if t.Failed() {
				t.Fatalf("%s, closed at %q", name, point)
			}
		}
	}
	t.Logf("%d attached, %d gone", attached, gone)
	if gone < 20 {
		t.Error("hardly anything was closed in time")
	}
}

// TestFailsEverywhere has each change of each operation fail once, as on a full disk: what was done goes back or
// is tried again, and nothing is left.
func TestFailsEverywhere(t *testing.T) {
	f := newFaulty(t)
	b := f.bystanders()
	missed := 0
	for _, name := range slices.Sorted(maps.Keys(operations())) {
		o := operations()[name]
		for _, point := range f.pointsOf(o, b) {
			if strings.HasPrefix(point, "log ") || !f.fresh(point) {
				continue
			}
			r := f.ready(o)
			f.arm(only(point, "fail"))
			err := o.do(r)
			if strings.HasPrefix(name, "close") {
				f.quiet() // nobody answers
			}
			if !slices.Contains(f.disarm(), point) {
				t.Logf("%s: %q was not reached", name, point)
				if !needsFlow(point) {
					missed++
				}
			}
			r.c.Close()
			r.settled(b)
			if t.Failed() {
				t.Fatalf("%s, failed at %q: %v", name, point, err)
			}
		}
	}
	if missed > 3 {
		t.Errorf("%d points were not reached", missed)
	}
	b.keep.whole()
}

// common are changes of what all boxes share: the zone, the addresses at rest. Who holds one of them up holds up
// others, for as long as a file takes.
var common = []string{"zone", "/run/minhost #", "/rest", ".rest", "leases #2"}

// TestNobodyWaits holds the helper up before each change that is one box's, and lives a whole life of another box
// meanwhile.
func TestNobodyWaits(t *testing.T) {
	f := newFaulty(t)
	b := f.bystanders()
	held := 0
	for _, name := range []string{"plan", "attach", "attach own_ip", "join", "update", "listen", "teardown", "teardown own_ip"} {
		o := operations()[name]
		for _, point := range f.pointsOf(o, b) {
			if slices.ContainsFunc(common, func(c string) bool { return strings.Contains(point, c) }) || !f.fresh(point) {
				continue
			}
			r := f.ready(o)
			reached, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			f.arm(func(p string) string {
				if p == point {
					first := false
					once.Do(func() { first = true })
					if first {
						close(reached)
						<-release
					}
				}
				return ""
			})
			done := make(chan error, 1)
			go func() { done <- o.do(r) }()
			select {
			case <-reached:
				if err := f.otherLife(); err != nil {
					t.Errorf("%s held up at %q: another box: %v", name, point, err)
				}
				held++
			case <-time.After(5 * time.Second):
				t.Logf("%s: %q was not reached", name, point) // flows to cut, now and then
			}
			close(release)
			if err := <-done; err != nil {
				t.Errorf("%s held up at %q: %v", name, point, err)
			}
			f.disarm()
			r.c.Close()
			r.settled(b)
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("held up at %d points", held)
	if held < 30 {
		t.Error("too few points")
	}
}

// otherLife is a box of another account, each call within ten seconds: the bound is for a busy machine.
func (f *faulty) otherLife() error {
	ctx, cancel := context.WithTimeout(f.ctx(), 10*time.Second)
	defer cancel()
	c, err := f.tryDial(memberUID)
	if err != nil {
		return err
	}
	defer c.Close()
	plan, err := c.Plan(ctx, planIn("other", denyPolicy()))
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	a := startAgent(f, netlab.Spawn{Leaf: netlab.NoLeaf, UID: memberUID})
	defer a.Kill()
	if err := c.Attach(ctx, api.AttachIn{Lease: plan.Lease, PID: a.PID()}, nil); err != nil {
		return fmt.Errorf("attach: %w", err)
	}
	if err := c.Update(ctx, api.UpdateIn{Lease: plan.Lease, Secret: plan.Secret, Policy: new(openPolicy())}); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	if _, err := c.List(ctx); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	_, err = c.Teardown(ctx, api.TeardownIn{Lease: plan.Lease, Secret: plan.Secret, Kill: true})
	return err
}
