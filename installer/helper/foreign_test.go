package helper

import (
	"encoding/json"
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

// TestWhoseEndItWas: what a lease that has ended answers for a minute, it answers those alone who could end it.
func TestWhoseEndItWas(t *testing.T) {
	r := newRig(t)
	owner, other, root := r.dial(operatorUID, 10), r.dial(otherUID, 11), r.dial(0, 12)
	box := r.box(owner, api.PlanIn{Name: "web"}, 20)
	in := api.TeardownIn{Lease: box.Lease, Secret: box.Secret, Kill: true}
	guess := in
	guess.Secret = "guess"
	plan := owner.plan(api.PlanIn{})
	for _, c := range []struct {
		what   string
		w      *wire
		method string
		in     any
		want   string
	}{
		{"a box, on another connection", r.dial(operatorUID, 14), "Abandon", api.AbandonIn{Lease: box.Lease}, "WrongState"},
		{"the end", owner, "Teardown", in, ""},
		{"again", owner, "Teardown", in, ""},
		{"again by root", root, "Teardown", in, ""},
		{"again by another operator", other, "Teardown", in, "NoSuchLease"},
		{"again without the secret", owner, "Teardown", guess, "WrongSecret"},
		{"a plan, on another connection", r.dial(operatorUID, 13), "Abandon", api.AbandonIn{Lease: plan.Lease}, "NotAllowed"},
		{"a plan, by another operator", other, "Abandon", api.AbandonIn{Lease: plan.Lease}, "NoSuchLease"},
		{"a plan, by root", root, "Abandon", api.AbandonIn{Lease: plan.Lease}, ""},
		{"again by who planned it", owner, "Abandon", api.AbandonIn{Lease: plan.Lease}, ""},
		{"again by root", root, "Abandon", api.AbandonIn{Lease: plan.Lease}, ""},
		{"a plan that was abandoned", owner, "Teardown", api.TeardownIn{Lease: plan.Lease, Secret: plan.Secret}, "NoSuchLease"},
		{"again by another operator", other, "Abandon", api.AbandonIn{Lease: plan.Lease}, "NoSuchLease"},
	} {
		if err := c.w.call(c.method, c.in, nil); shortName(err) != c.want {
			t.Errorf("%s %s: %v, want %q", c.method, c.what, err, c.want)
		}
	}
}

// TestWatchOfOneLease: who watches a lease hears of that alone, and nobody watches another's.
func TestWatchOfOneLease(t *testing.T) {
	r := newRig(t)
	owner := r.dial(operatorUID, 10)
	one, two := r.box(owner, api.PlanIn{Name: "one"}, 20), r.box(owner, api.PlanIn{Name: "two"}, 21)
	for _, box := range []string{one.Lease, "one"} {
		if err := r.dial(otherUID, 11).call("Watch", api.WatchIn{Lease: box}, nil); shortName(err) != "InvalidArgument" {
			t.Errorf("without more: %v", err)
		}
		foreign := r.dial(otherUID, 12)
		foreign.send(`{"method":"dev.minimal.Host.Watch","parameters":{"lease":"` + box + `"},"more":true}`)
		if a, err := foreign.receive(); err != nil || a.Error != "dev.minimal.Host.NoSuchLease" {
			t.Errorf("watch of a foreign box: %+v, %v", a, err)
		}
	}
	w, root := r.dial(operatorUID, 13), r.dial(0, 14)
	for _, w := range []*wire{w, root} {
		w.send(`{"method":"dev.minimal.Host.Watch","parameters":{"lease":"one"},"more":true}`)
	}
	r.eventually("both watch", func() bool {
		r.h.events.mu.Lock()
		defer r.h.events.mu.Unlock()
		return len(r.h.events.watchers) == 2
	})
	for _, p := range []api.PlanOut{two, one} {
		in := api.UpdateIn{Lease: p.Lease, Secret: p.Secret, Policy: new(api.Policy{Egress: api.EgressOpen})}
		if err := owner.call("Update", in, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range []*wire{w, root} {
		a, err := w.receive()
		var out api.WatchOut
		if err == nil {
			err = json.Unmarshal(a.Parameters, &out)
		}
		if err != nil || out.Event.Lease != one.Lease || out.Event.Kind != api.EventKindUpdated {
			t.Errorf("the first event is %+v, %v", out.Event, err)
		}
	}
}
