package helper

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// TestRulesByBox: a rule for a box is the address of the live box of that name and account, and follows
// it; so is who is let in.
func TestRulesByBox(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	webPolicy := api.Policy{Egress: api.EgressRules, Rules: []api.Rule{{To: "box:API", Ports: "3000", Protocol: api.ProtocolTCP}}}
	web := r.box(w, api.PlanIn{Name: "web", Policy: webPolicy}, 20)
	if v := r.held(web.Lease); len(v.Policy.Rules) != 0 || v.Policy.Egress != lease.Rules {
		t.Errorf("no box api yet: %+v", v)
	}
	r.explains(w, "web", "box:api:3000", false, "a rule names box api, which does not live now")

	// A stranger's box of that name is another one.
	foreign := r.boxOf(otherUID, r.dial(otherUID, 11), api.PlanIn{Name: "api", Policy: api.Policy{Egress: api.EgressDeny, IngressBoxes: []string{"web"}}}, 21)
	if v := r.held(web.Lease); len(v.Policy.Rules) != 0 {
		t.Errorf("a stranger's box: %+v", v)
	}
	if v := r.held(foreign.Lease); len(v.From) != 0 {
		t.Errorf("a stranger lets in: %+v", v)
	}
	r.end(r.dial(otherUID, 12), foreign)

	inner := r.box(w, api.PlanIn{Name: "api", Policy: api.Policy{Egress: api.EgressDeny}}, 22)
	v := r.held(web.Lease)
	if len(v.Policy.Rules) != 1 || v.Policy.Rules[0].To.Addr().String() != inner.Address || v.Policy.Rules[0].String() != "box:api:3000/tcp" {
		t.Errorf("box api lives: %+v", v)
	}
	r.explains(w, "web", "box:api:3000", false, "of box api: its ingress does not allow it")
	r.explains(w, "web", "box:api:3001", false, "")
	r.update(w, inner, api.Policy{Egress: api.EgressDeny, IngressBoxes: []string{"web", "web", "other"}})
	if v := r.held(inner.Lease); !slices.Equal(v.From, []uint16{r.held(web.Lease).Number}) {
		t.Errorf("let in: %+v", v)
	}
	r.explains(w, "web", "box:api:3000", true, "the rule box:api:3000/tcp allows it, and of box api: its ingress lets that box in")
	r.explains(w, "web", inner.Address+":3000", true, "box:api")
	r.update(w, inner, api.Policy{Egress: api.EgressDeny, IngressBoxes: []string{"web", "*"}})
	if v := r.held(inner.Lease); !v.FromEveryBox {
		t.Errorf("every box: %+v", v)
	}
	r.end(w, inner)
	if v := r.held(web.Lease); len(v.Policy.Rules) != 0 {
		t.Errorf("box api is gone: %+v", v)
	}
	again := r.box(w, api.PlanIn{Name: "api", Policy: api.Policy{Egress: api.EgressDeny}}, 23)
	if v := r.held(web.Lease); again.Address == inner.Address || len(v.Policy.Rules) != 1 || v.Policy.Rules[0].To.Addr().String() != again.Address {
		t.Errorf("another box api, %s: %+v", again.Address, v)
	}
	// A new helper finds the same.
	r.stop()
	r.start()
	if v := r.held(web.Lease); len(v.Policy.Rules) != 1 || v.Policy.Rules[0].To.Addr().String() != again.Address {
		t.Errorf("after a restart: %+v", v)
	}
}

// TestRulesOfABoxThatEnds: the verdict of a box that ends meanwhile is not written anew because another one comes that it
// names: it would stay.
func TestRulesOfABoxThatEnds(t *testing.T) {
	r := newRig(t)
	w, other := r.dial(operatorUID, 10), r.dial(operatorUID, 11)
	names := r.box(w, api.PlanIn{Name: "web", Policy: api.Policy{Egress: api.EgressRules, Rules: []api.Rule{{To: "box:api", Protocol: api.ProtocolTCP}}}}, 20)
	plan := other.plan(api.PlanIn{Name: "api"})
	r.w.spawn(21, operatorUID)
	state := func(id string, want lease.State) {
		r.eventually(id+" is "+string(want), func() bool {
			r.h.mu.Lock()
			defer r.h.mu.Unlock()
			return r.h.boxes[id].State == want
		})
		time.Sleep(20 * time.Millisecond) // to the lock, where nobody is seen; a test that wins too early is green
	}
	r.h.mu.Lock()
	b := r.h.boxes[names.Lease]
	r.h.mu.Unlock()
	b.changing.Lock()
	w.begin("Teardown", api.TeardownIn{Lease: names.Lease, Secret: names.Secret, Kill: true})
	state(names.Lease, lease.Ending)
	other.begin("Attach", api.AttachIn{Lease: plan.Lease, PID: 21})
	state(plan.Lease, lease.Attached)
	b.changing.Unlock()
	for _, w := range []*wire{w, other} {
		if err := w.answered(); err != nil {
			t.Error(err)
		}
	}
	r.end(other, plan)
	r.atRest()
}

// TestRulesByBoxAreChecked: nonsense is refused with the field that has it.
func TestRulesByBoxAreChecked(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	many := make([]string, lease.MaxIngressBoxes+1)
	for i := range many {
		many[i] = "b" + strings.Repeat("x", i%50)
	}
	for field, p := range map[string]api.Policy{
		"policy.rules[0]":         {Egress: api.EgressRules, Rules: []api.Rule{{To: "box:-", Protocol: api.ProtocolTCP}}},
		"policy.ingress_boxes[1]": {Egress: api.EgressDeny, IngressBoxes: []string{"a", "host"}},
		"policy.ingress_boxes":    {Egress: api.EgressDeny, IngressBoxes: many},
	} {
		err := w.call("Plan", api.PlanIn{Mode: api.ModeHost, Policy: p}, nil)
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := w.call("Plan", api.PlanIn{Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny, Ingress: api.IngressNone, IngressBoxes: []string{"a"}}}, nil); err == nil {
		t.Error("boxes let in by ingress none")
	}
}

// held is what the table has for a lease.
func (r *rig) held(id string) lease.Verdict {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	return r.w.table[r.w.leaves[id].node]
}

func (r *rig) update(w *wire, out api.PlanOut, p api.Policy) {
	r.t.Helper()
	if err := w.call("Update", api.UpdateIn{Lease: out.Lease, Secret: out.Secret, Policy: new(p)}, nil); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) end(w *wire, out api.PlanOut) {
	r.t.Helper()
	if err := w.call("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret, Kill: true}, nil); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) explains(w *wire, box, to string, allowed bool, words string) {
	r.t.Helper()
	var out api.ExplainOut
	if err := w.call("Explain", api.ExplainIn{Box: box, Destination: to}, &out); err != nil {
		r.t.Fatal(err)
	}
	if out.Allowed != allowed || !strings.Contains(out.Reason+out.Rule, words) {
		r.t.Errorf("explain %s %s: %+v; want %t, %q", box, to, out, allowed, words)
	}
}
