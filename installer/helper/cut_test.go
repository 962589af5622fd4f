package helper

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// TestUpdateCuts: live flows are ended while the table holds the new verdict (the fake refuses
// otherwise), and then it is an ordinary one. A box that ends takes all of its flows along.
func TestUpdateCuts(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	out := r.box(w, api.PlanIn{Name: "web", Policy: api.Policy{Egress: api.EgressOpen}}, 20)
	if err := w.call("Update", api.UpdateIn{Lease: out.Lease, Secret: out.Secret, Policy: new(api.Policy{Egress: api.EgressDeny})}, nil); err != nil {
		t.Fatal(err)
	}
	if cuts := r.cuts(); len(cuts) != 1 || cuts[0].Policy.Egress != lease.Deny {
		t.Fatalf("cut: %+v", cuts)
	}
	r.cutting(out.Lease, false)
	if err := w.call("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret, Kill: true}, nil); err != nil {
		t.Fatal(err)
	}
	if cuts := r.cuts(); len(cuts) != 2 || cuts[1].Policy.Egress != lease.Deny || cuts[1].Policy.Ingress != lease.FromNone {
		t.Errorf("cut at the end: %+v", cuts)
	}
}

// TestWiderUpdateCutsNothing: a policy that admits all that the one before did leaves live flows alone, and as
// judged as they are; the next one that does not ends them.
func TestWiderUpdateCutsNothing(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	rule := func(to string) api.Rule { return api.Rule{To: to, Ports: "443", Protocol: api.ProtocolTCP} }
	list := func(to ...string) api.Policy {
		p := api.Policy{Egress: api.EgressRules}
		for _, a := range to {
			p.Rules = append(p.Rules, rule(a))
		}
		return p
	}
	out := r.box(w, api.PlanIn{Name: "web", Policy: list("192.0.2.1")}, 20)
	for _, c := range []struct {
		to   []string
		cuts int
	}{{[]string{"192.0.2.1", "192.0.2.2"}, 0}, {[]string{"192.0.2.0/24"}, 0}, {[]string{"192.0.2.1", "192.0.2.2"}, 1}} {
		if err := w.call("Update", api.UpdateIn{Lease: out.Lease, Secret: out.Secret, Policy: new(list(c.to...))}, nil); err != nil {
			t.Fatal(err)
		}
		if cuts := r.cuts(); len(cuts) != c.cuts {
			t.Errorf("%v: %d cuts, want %d", c.to, len(cuts), c.cuts)
		}
		if n := r.rules(out.Lease); n != len(c.to) {
			t.Errorf("%v: the table has %d rules", c.to, n)
		}
		r.w.mu.Lock()
		if g := r.w.store[out.Lease].Generation; int(g) != c.cuts {
			t.Errorf("%v: generation %d, want %d", c.to, g, c.cuts)
		}
		r.w.mu.Unlock()
		r.cutting(out.Lease, false)
	}
}

// TestCutFails: the new policy stays when older flows cannot be ended, the caller is told, the table refuses what
// nobody judges again, and this helper ends them later, or the next one.
func TestCutFails(t *testing.T) {
	for _, next := range []bool{false, true} {
		cutFails(t, next)
	}
}

func cutFails(t *testing.T, next bool) {
	t.Helper()
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	out := r.box(w, api.PlanIn{Name: "web", Policy: api.Policy{Egress: api.EgressOpen}}, 20)
	r.w.setHook(func(at string) error {
		if at == "cut" {
			return errors.New("injected")
		}
		return nil
	})
	in := api.UpdateIn{Lease: out.Lease, Secret: out.Secret, Policy: new(api.Policy{Egress: api.EgressDeny})}
	if err := w.call("Update", in, nil); shortName(err) != "Internal" {
		t.Fatalf("update: %v", err)
	}
	r.egress(out.Lease, lease.Deny)
	r.cutting(out.Lease, true)
	r.eventually("the table knows", func() bool { return r.isUncut(out.Lease) })
	if next {
		r.stop()
		r.start() // and fails again
		if !r.isUncut(out.Lease) {
			t.Error("the next helper's table does not know")
		}
	}
	r.w.setHook(nil)
	r.eventually("flows are ended", func() bool { return len(r.cuts()) > 0 })
	r.eventually("it is an ordinary box", func() bool { return !r.isCutting(out.Lease) && !r.isUncut(out.Lease) })
	r.cutting(out.Lease, false)
}

// TestVerdictBehindTheCutFails: flows were ended, but the table still has the verdict that ends them. It is written
// again until the box is an ordinary one.
func TestVerdictBehindTheCutFails(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	out := r.box(w, api.PlanIn{Name: "web", Policy: api.Policy{Egress: api.EgressOpen}}, 20)
	var cut, failed atomic.Bool
	r.w.setHook(func(at string) error {
		switch {
		case at == "cut":
			cut.Store(true)
		case at == "put" && cut.Load() && !failed.Swap(true):
			return errors.New("injected")
		}
		return nil
	})
	in := api.UpdateIn{Lease: out.Lease, Secret: out.Secret, Policy: new(api.Policy{Egress: api.EgressDeny})}
	if err := w.call("Update", in, nil); shortName(err) != "Internal" {
		t.Fatalf("update: %v", err)
	}
	r.eventually("it is an ordinary box", func() bool { return !r.isCutting(out.Lease) && !r.isUncut(out.Lease) })
	r.cutting(out.Lease, false)
}

// TestEndOfUncut: a box that ends while its older flows cannot be ended has no verdict afterwards.
func TestEndOfUncut(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	out := r.box(w, api.PlanIn{Name: "web", Policy: api.Policy{Egress: api.EgressOpen}}, 20)
	var tried atomic.Int32
	r.w.setHook(func(at string) error {
		if at != "cut" {
			return nil
		}
		tried.Add(1)
		return errors.New("injected")
	})
	in := api.UpdateIn{Lease: out.Lease, Secret: out.Secret, Policy: new(api.Policy{Egress: api.EgressDeny})}
	if err := w.call("Update", in, nil); shortName(err) != "Internal" {
		t.Fatalf("update: %v", err)
	}
	r.eventually("it is tried again", func() bool { return tried.Load() > 2 })
	if err := w.call("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret, Kill: true}, nil); err != nil {
		t.Fatal(err)
	}
	r.stop() // waits for what goes on
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if len(r.w.table) != 0 {
		t.Errorf("the table has %+v", r.w.table)
	}
}

func (r *rig) isUncut(id string) bool {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	return r.w.table[r.w.leaves[id].node].Uncut
}

func (r *rig) cuts() []lease.Verdict {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	return append([]lease.Verdict(nil), r.w.cuts...)
}

func (r *rig) isCutting(id string) bool {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	return r.w.store[id].Cutting
}

// cutting checks that record and table agree.
func (r *rig) cutting(id string, want bool) {
	r.t.Helper()
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if record, table := r.w.store[id].Cutting, r.w.table[r.w.leaves[id].node].Cutting; record != want || table != want {
		r.t.Errorf("cutting: record %t, table %t, want %t", record, table, want)
	}
}
