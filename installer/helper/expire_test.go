package helper

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// twoRules is a policy with a rule for seconds and one for ever.
func twoRules(seconds int) api.Policy {
	return api.Policy{Egress: api.EgressRules, Rules: []api.Rule{
		{To: "192.0.2.7", Ports: "443", Protocol: api.ProtocolTCP, Seconds: seconds}, {To: "192.0.2.8", Ports: "443", Protocol: api.ProtocolTCP}}}
}

// later moves the clock and wakes who waits for it.
func (r *rig) later(d time.Duration) {
	r.advance(d)
	r.h.expiry.wake <- struct{}{}
}

// rules of a box: in memory, in its record and in the table, when they agree.
func (r *rig) rules(id string) int {
	r.h.mu.Lock()
	b := r.h.boxes[id]
	memory, leaf := len(b.Policy.Rules), b.leaf.ID()
	r.h.mu.Unlock()
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if record, table := r.w.store[id], r.w.table[leaf]; len(record.Policy.Rules) != memory || len(table.Policy.Rules) != memory || record.Cutting || table.Cutting {
		return -1
	}
	return memory
}

// TestRuleEnds: a rule with seconds is listed with its end; at that time it is out of the verdict, flows are
// cut under the new one, and whoever watches is told. The other rule stays.
func TestRuleEnds(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	out := r.box(w, api.PlanIn{Name: "web", Policy: twoRules(600)}, 20)
	var list api.ListOut
	if err := w.call("List", api.ListIn{}, &list); err != nil || list.Leases[0].Policy.Rules[0].Until != "2023-11-14T22:23:20Z" {
		t.Fatalf("listed: %+v, %v", list.Leases, err)
	}
	var why api.ExplainOut
	if err := w.call("Explain", api.ExplainIn{Box: "web", Destination: "192.0.2.7:443"}, &why); err != nil || !why.Allowed || !strings.HasSuffix(why.Rule, "/tcp@2023-11-14T22:23:20Z") {
		t.Errorf("explained: %+v, %v", why, err)
	}
	watch := r.dial(operatorUID, 11)
	watch.send(`{"method":"dev.minimal.Host.Watch","parameters":{"lease":"` + out.Lease + `"},"more":true}`)
	r.eventually("somebody watches", func() bool {
		r.h.events.mu.Lock()
		defer r.h.events.mu.Unlock()
		return len(r.h.events.watchers) == 1
	})
	r.later(600*time.Second - endAhead - time.Millisecond)
	if n := r.rules(out.Lease); n != 2 || len(r.cuts()) != 0 {
		t.Errorf("before the end: %d rules, %d cuts", n, len(r.cuts()))
	}
	r.later(time.Millisecond)
	r.eventually("the rule is out", func() bool { return r.rules(out.Lease) == 1 })
	if cuts := r.cuts(); len(cuts) != 1 || len(cuts[0].Policy.Rules) != 1 || cuts[0].Generation != 1 {
		t.Errorf("cut: %+v", cuts)
	}
	var told api.WatchOut
	a, err := watch.receive()
	if err = errors.Join(err, json.Unmarshal(a.Parameters, &told)); err != nil || told.Event.Kind != api.EventKindExpired ||
		told.Event.Text != "the rule 192.0.2.7/32:443/tcp@2023-11-14T22:23:20Z has ended" {
		t.Errorf("told: %+v, %v", told.Event, err)
	}
	if err := w.call("Explain", api.ExplainIn{Box: "web", Destination: "192.0.2.7:443"}, &why); err != nil || why.Allowed {
		t.Errorf("explained: %+v, %v", why, err)
	}
}

// TestRuleEndsAtLast: whatever fails once, it is done again until the rule is out and its flows are cut.
func TestRuleEndsAtLast(t *testing.T) {
	for _, point := range []string{"store", "put", "cut"} {
		t.Run(point, func(t *testing.T) {
			r := newRig(t)
			w := r.dial(operatorUID, 10)
			out := r.box(w, api.PlanIn{Name: "web", Policy: twoRules(600)}, 20)
			failed := 0
			r.w.setHook(func(at string) error {
				if at == point && failed < 3 {
					failed++
					return errors.New("injected")
				}
				return nil
			})
			r.later(time.Hour)
			r.eventually("the rule is out", func() bool { return r.rules(out.Lease) == 1 && len(r.cuts()) > 0 })
			for _, c := range r.cuts() {
				if len(c.Policy.Rules) != 1 || c.Generation != 1 {
					t.Errorf("cut under %+v", c)
				}
			}
		})
	}
}

// TestRuleEndsByItself: nobody needs to remind the helper of an end that came with a plan, and one that was over when the
// box was attached is none of its rules.
func TestRuleEndsByItself(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	plan := w.plan(api.PlanIn{Name: "web", Policy: twoRules(1)})
	r.advance(2 * time.Second)
	r.w.spawn(20, operatorUID)
	if err := w.call("Attach", api.AttachIn{Lease: plan.Lease, PID: 20}, nil); err != nil {
		t.Fatal(err)
	}
	r.eventually("the rule is out", func() bool { return r.rules(plan.Lease) == 1 })
}

// TestRuleEndsUnseen: a rule that ended while no helper lived is not live for a moment under the next, which
// cuts its flows; nor is one that ended before its box was attached, for longer than the kernel keeps it.
func TestRuleEndsUnseen(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	out := r.box(w, api.PlanIn{Name: "web", Policy: twoRules(600)}, 20)
	planned := w.plan(api.PlanIn{Name: "api", Policy: twoRules(700)})
	r.later(650 * time.Second)
	r.eventually("the rule is out", func() bool { return r.rules(out.Lease) == 1 })
	in := api.UpdateIn{Lease: out.Lease, Secret: out.Secret, Policy: new(twoRules(10))}
	if err := w.call("Update", in, nil); err != nil || r.rules(out.Lease) != 2 {
		t.Fatalf("update: %v", err)
	}
	r.later(100 * time.Second)
	r.w.spawn(21, operatorUID)
	if err := w.call("Attach", api.AttachIn{Lease: planned.Lease, PID: 21}, nil); err != nil {
		t.Fatal(err)
	}
	r.eventually("the rule of a box that was attached late is out", func() bool { return r.rules(planned.Lease) == 1 })
	if err := w.call("Update", in, nil); err != nil {
		t.Fatal(err)
	}
	r.stop()
	before := len(r.cuts())
	r.advance(time.Hour)
	r.start()
	r.h.mu.Lock()
	v := r.h.verdictOf(r.h.boxes[out.Lease])
	r.h.mu.Unlock()
	if len(v.Policy.Rules) != 1 {
		t.Errorf("replayed: %+v", v)
	}
	r.eventually("flows are cut", func() bool { return r.rules(out.Lease) == 1 && len(r.cuts()) > before })
	// Who watches first is told, and nobody else's watcher, nor one of another lease.
	said := func(uid uint32, params string) bool {
		t.Helper()
		watch := r.dial(uid, 40)
		watch.send(`{"method":"dev.minimal.Host.Watch","parameters":{` + params + `},"more":true}`)
		r.eventually("it watches", func() bool { return r.watchers() == 1 })
		r.h.tell(r.h.boxes[out.Lease], api.EventKindUpdated, "mark")
		r.h.tell(r.h.boxes[planned.Lease], api.EventKindUpdated, "mark")
		r.h.tell(&box{Lease: lease.Lease{UID: otherUID}}, api.EventKindUpdated, "mark")
		a, err := watch.receive()
		if err != nil {
			t.Fatal(err)
		}
		watch.c.Close()
		r.eventually("it is gone", func() bool { return r.watchers() == 0 })
		return strings.Contains(string(a.Parameters), `"kind":"expired"`) && strings.Contains(string(a.Parameters), "192.0.2.7") && strings.Contains(string(a.Parameters), out.Lease)
	}
	if said(otherUID, "") || said(operatorUID, `"lease":"`+planned.Lease+`"`) || !said(operatorUID, "") || said(operatorUID, "") {
		t.Error("what ended unseen is not told once")
	}
	if slices.ContainsFunc(r.cuts()[before:], func(c lease.Verdict) bool { return len(c.Policy.Rules) != 1 }) {
		t.Errorf("cut: %+v", r.cuts()[before:])
	}
}

// TestTermsRefused: an end that cannot be is an error that names the rule.
func TestTermsRefused(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	for _, bad := range []api.Rule{{Seconds: -1}, {Seconds: 31536001}, {Until: "noon"}, {Until: "2023-11-14T22:13:20Z"}, {Seconds: 1, Until: "2024-01-01T00:00:00Z"}} {
		bad.To, bad.Protocol = "192.0.2.7", api.ProtocolAny
		var e *api.InvalidArgument
		err := w.call("Plan", api.PlanIn{Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressRules, Rules: []api.Rule{bad}}}, nil)
		if !errors.As(err, &e) || e.Field != "policy.rules[0]" {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
