package helper

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// weighing is a table that notes how many verdicts it was asked about at once. Equal policies share elements.
type weighing struct {
	fakeTable
	mu    sync.Mutex
	asked []int
}

func (w *weighing) Elements(all []lease.Verdict) int {
	w.mu.Lock()
	w.asked = append(w.asked, len(all))
	w.mu.Unlock()
	n, done := 0, map[string]bool{}
	for _, v := range all {
		if key := fmt.Sprint(v.Policy); !done[key] {
			done[key] = true
			n += len(v.Policy.Rules)
		}
	}
	return n
}

// rules are so many, none next to another; which list is told by the port.
func rules(many, port int) api.Policy {
	p := api.Policy{Egress: api.EgressRules}
	for i := range many {
		p.Rules = append(p.Rules, api.Rule{To: fmt.Sprintf("10.%d.%d.1", i/200, i%200), Ports: fmt.Sprint(port), Protocol: api.ProtocolTCP})
	}
	return p
}

// TestAffordAsksLittle: what the policies of others take is not worked out again for each plan, and who shares is asked
// only where the sum is too much.
func TestAffordAsksLittle(t *testing.T) {
	var table *weighing
	r := newRig(t, func(c *Config) {
		table = &weighing{fakeTable: c.Table.(fakeTable)}
		c.Table = table
	})
	w := r.dial(operatorUID, 100)
	for range 6 { // 6,000 one by one, 1,000 together
		w.plan(api.PlanIn{Policy: rules(1000, 80)})
	}
	table.mu.Lock()
	defer table.mu.Unlock()
	if want := []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 6}; !slices.Equal(table.asked, want) {
		t.Errorf("asked about %v, want %v", table.asked, want)
	}
}

// TestAffordAfterUpdate: what a box takes is what its policy of now takes.
func TestAffordAfterUpdate(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Table = &weighing{fakeTable: c.Table.(fakeTable)} })
	w := r.dial(operatorUID, 100)
	box := r.box(w, api.PlanIn{Policy: rules(1, 80)}, 200)
	change := func(p api.Policy) {
		if err := w.call("Update", api.UpdateIn{Lease: box.Lease, Secret: box.Secret, Policy: &p}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for port := range 4 {
		w.plan(api.PlanIn{Policy: rules(1000, 90+port)})
	}
	change(rules(1000, 80)) // wider
	if err := w.call("Plan", api.PlanIn{Mode: api.ModeHost, Policy: rules(1, 99)}, nil); shortName(err) != "PolicyTooLarge" {
		t.Errorf("5,001 elements: %v", err)
	}
	change(rules(999, 80)) // tighter
	w.plan(api.PlanIn{Policy: rules(1, 99)})
}

// heavy is a table in which every rule takes a thousand elements.
type heavy struct{ *weighing }

func (h heavy) Elements(all []lease.Verdict) int { return 1000 * h.weighing.Elements(all) }

// TestAffordLimits: one account is bounded, the elements of others do not count against it, root is bounded by the table
// alone; a policy that replaces another is not counted beside it, nor is one that others have too.
func TestAffordLimits(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Table = heavy{&weighing{fakeTable: c.Table.(fakeTable)}} })
	w, other, root := r.dial(operatorUID, 100), r.dial(otherUID, 101), r.dial(0, 102)
	plan := func(w *wire, port int) error {
		return w.call("Plan", api.PlanIn{Mode: api.ModeHost, Policy: rules(1, port)}, nil)
	}
	fill := func(w *wire, ports ...int) {
		t.Helper()
		for _, port := range ports {
			if err := plan(w, port); err != nil {
				t.Fatal(err)
			}
		}
	}
	large := func(err error, limit int) {
		t.Helper()
		if e, ok := err.(*api.PolicyTooLarge); !ok || e.Limit != limit {
			t.Errorf("%v, want the limit %d", err, limit)
		}
	}
	fill(other, 1, 2, 3, 4, 5)
	large(plan(other, 6), maxElements)
	fill(w, 11, 11, 11, 11, 11, 11, 12, 13, 14)
	box := r.box(w, api.PlanIn{Policy: rules(1, 15)}, 200)
	large(plan(w, 16), maxElements)
	for _, port := range []int{17, 18} {
		in := api.UpdateIn{Lease: box.Lease, Secret: box.Secret, Policy: new(rules(1, port))}
		if err := w.call("Update", in, nil); err != nil {
			t.Errorf("as much in the place of as much: %v", err)
		}
	}
	fill(root, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)
	large(plan(root, 31), maxAllElements)
	r.w.procs[200].kill(r.w)
}
