package helper

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// TestPlanRefusals: what a plan may not be; nothing stays reserved.
func TestPlanRefusals(t *testing.T) {
	deny := api.Policy{Egress: api.EgressDeny}
	rule := func(to, ports string, p api.Protocol) api.Policy {
		return api.Policy{Egress: api.EgressRules, Rules: []api.Rule{{To: to, Ports: ports, Protocol: p}}}
	}
	cases := map[string]struct {
		in   api.PlanIn
		want string
	}{
		"bad letters":  {api.PlanIn{Name: "we_b", Mode: api.ModeHost, Policy: deny}, "name"},
		"reserved":     {api.PlanIn{Name: "host", Mode: api.ModeHost, Policy: deny}, "name"},
		"bad subnet":   {api.PlanIn{Mode: api.ModeHost, Policy: rule("10.0.0.0/33", "", api.ProtocolTCP)}, "policy.rules[0]"},
		"bad port":     {api.PlanIn{Mode: api.ModeHost, Policy: rule("10.0.0.0/8", "99999", api.ProtocolTCP)}, "policy.rules[0]"},
		"ports, any":   {api.PlanIn{Mode: api.ModeHost, Policy: rule("10.0.0.0/8", "80", api.ProtocolAny)}, "policy.rules[0]"},
		"no rules":     {api.PlanIn{Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressRules}}, "policy.rules"},
		"contradicted": {api.PlanIn{Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny, Rules: rule("::/0", "", api.ProtocolAny).Rules}}, "policy.rules"},
		"port 0":       {api.PlanIn{Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny, Ingress: api.IngressPorts, IngressPorts: []int{0}}}, "policy.ingress_ports[0]"},
		"port 65536":   {api.PlanIn{Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny, Ingress: api.IngressPorts, IngressPorts: []int{80, 65536}}}, "policy.ingress_ports[1]"},
		"bad attempt":  {api.PlanIn{Mode: api.ModeHost, Policy: deny, Attempt: "a\tb"}, "attempt"},
	}
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	for name, c := range cases {
		err := w.call("Plan", c.in, nil)
		if e, ok := err.(*api.InvalidArgument); !ok || e.Field != c.want {
			t.Errorf("%s: %v, want an invalid %s", name, err, c.want)
		}
	}
	r.atRest()
}

// TestRangeFull: 253 boxes have an address, the next one is told; root is not counted per account.
func TestRangeFull(t *testing.T) {
	r := newRig(t)
	w := r.dial(0, 10)
	seen := map[string]bool{}
	for i := range 253 {
		seen[w.plan(api.PlanIn{Name: fmt.Sprint("n", i)}).Address] = true
	}
	if len(seen) != 253 || seen["127.0.64.254"] || seen[""] {
		t.Errorf("%d different addresses", len(seen))
	}
	in := api.PlanIn{Name: "one-more", Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny}}
	if err := w.call("Plan", in, nil); shortName(err) != "NoAddress" {
		t.Errorf("254th address: %v", err)
	}
	in.Name = ""
	if err := w.call("Plan", in, nil); err != nil {
		t.Errorf("a box without a name needs no address: %v", err)
	}
}

func TestQuota(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	for i := range maxAddresses {
		w.plan(api.PlanIn{Name: fmt.Sprint("n", i)})
	}
	err := w.call("Plan", api.PlanIn{Name: "x", Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny}}, nil)
	if shortName(err) != "QuotaExceeded" {
		t.Errorf("address %d: %v", maxAddresses+1, err)
	}
	if got := r.dial(otherUID, 11).plan(api.PlanIn{Name: "y"}).Name; got != "y" {
		t.Error("one account's quota is not another's")
	}
}

// TestQuotaCounts: what counts against an account, and what does not.
func TestQuotaCounts(t *testing.T) {
	for _, c := range []struct {
		l                 lease.Lease
		leaves, addresses int
		limit             int
	}{
		{lease.Lease{UID: operatorUID}, maxLeaves - 1, maxAddresses, 0},
		{lease.Lease{UID: operatorUID}, maxLeaves, 0, maxLeaves},
		{lease.Lease{UID: operatorUID, Name: "web"}, 0, maxAddresses - 1, 0},
		{lease.Lease{UID: operatorUID, Name: "web"}, 0, maxAddresses, maxAddresses},
		{lease.Lease{Name: "web"}, maxLeaves, maxAddresses, 0},
	} {
		var limit int
		if e, ok := quota(c.l, c.leaves, c.addresses).(*api.QuotaExceeded); ok {
			limit = e.Limit
		}
		if limit != c.limit {
			t.Errorf("%+v: limit %d", c, limit)
		}
	}
	r := newRig(t, func(c *Config) { c.Localhost = &fakeLocalhost{homes: map[uint64]lease.Home{}} })
	w := r.dial(operatorUID, 10)
	for range maxAddresses {
		if out := w.plan(api.PlanIn{}); out.Address == "" {
			t.Fatal("no address of its own")
		}
	}
	w.plan(api.PlanIn{Name: "web"}) // those are not of the range
}

// TestFailedPlanReservedNothing, whatever fails, and who waits for it is told.
func TestFailedPlanReservedNothing(t *testing.T) {
	r := newRig(t)
	w, watcher := r.dial(operatorUID, 10), r.dial(operatorUID, 11)
	making := newHalt()
	r.w.setHook(func(at string) error {
		if at == "mkdir" {
			making.pass()
			return errors.New("injected")
		}
		return nil
	})
	in := api.PlanIn{Name: "web", Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny}}
	w.begin("Plan", in)
	<-making.reached
	watcher.send(`{"method":"dev.minimal.Host.Watch","parameters":{"lease":"web"},"more":true}`)
	r.eventually("somebody watches", r.h.events.watched)
	close(making.goOn)
	if err := w.answered(); shortName(err) != "Internal" {
		t.Errorf("plan: %v", err)
	}
	a, err := watcher.receive()
	var out api.WatchOut
	if err = errors.Join(err, json.Unmarshal(a.Parameters, &out)); err != nil || out.Event.Kind != api.EventKindGone {
		t.Errorf("told: %+v, %v", out, err)
	}
	r.w.setHook(nil)
	if out := w.plan(in); out.Address != "127.0.64.1" {
		t.Errorf("the address of the failed one is not free: %s", out.Address)
	}
	w.c.Close()
	r.atRest()
}

// TestPlanOfAHelperThatEnds: a plan is no lease that outlives the helper, so neither is one that was being made.
func TestPlanOfAHelperThatEnds(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	making := make(chan struct{})
	r.w.setHook(func(at string) error {
		if at == "mkdir" {
			close(making)
			r.cancel()
			r.h.mu.Lock()
			c := r.h.names["web"].owner
			r.h.mu.Unlock()
			<-c.ctx.Done()
		}
		return nil
	})
	w.begin("Plan", api.PlanIn{Name: "web", Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny}})
	<-making
	r.stop()
	r.atRest()
}

// TestNoNamespaces: where they cannot be told apart, no mode that needs one is planned.
func TestNoNamespaces(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Isolation = nil })
	w := r.dial(operatorUID, 10)
	for _, in := range []api.PlanIn{{Mode: api.ModeNone, Policy: api.Policy{Egress: api.EgressDeny}}, ownIP} {
		if err := w.call("Plan", in, nil); shortName(err) != "NotSupported" {
			t.Errorf("mode %s: %v", in.Mode, err)
		}
	}
	r.atRest()
}

// TestUnenforceable: where the host cannot enforce, a confined box is refused unless asked for.
func TestUnenforceable(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Table, c.Unenforceable = nil, "no nftables" })
	w := r.dial(operatorUID, 10)
	in := api.PlanIn{Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny}}
	if err := w.call("Plan", in, nil); shortName(err) != "Unenforceable" {
		t.Errorf("deny: %v", err)
	}
	in.AllowUnenforced = true
	var out api.PlanOut
	if err := w.call("Plan", in, &out); err != nil || out.Enforcement != api.EnforcementNone || out.EnforcementCause != "no nftables" {
		t.Errorf("allow_unenforced: %v %+v", err, out)
	}
	var list api.ListOut
	if err := w.call("List", nil, &list); err != nil || !slices.ContainsFunc(list.Leases, func(l api.LeaseInfo) bool { return l.Enforcement == api.EnforcementNone }) {
		t.Errorf("list does not say unenforced: %v %+v", err, list)
	}
}

// TestUnenforcedIsSaid: an open box with refused subnets is confined as well, and only a box that was planned as
// unenforced may be given another policy that is not.
func TestUnenforcedIsSaid(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Table, c.Flows, c.Unenforceable = nil, nil, "no nftables" })
	r.w.table = nil
	w := r.dial(operatorUID, 10)
	in := api.PlanIn{Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressOpen, DenySubnets: []string{"10.0.0.0/8"}}}
	if err := w.call("Plan", in, nil); shortName(err) != "Unenforceable" {
		t.Errorf("open, with refused subnets: %v", err)
	}
	in.AllowUnenforced = true
	for pid, c := range map[int]struct {
		in   api.PlanIn
		want string
	}{20: {in, ""}, 21: {api.PlanIn{Policy: api.Policy{Egress: api.EgressOpen}}, "Unenforceable"}} {
		box := r.box(w, c.in, pid)
		update := api.UpdateIn{Lease: box.Lease, Secret: box.Secret, Policy: new(api.Policy{Egress: api.EgressDeny})}
		if err := w.call("Update", update, nil); shortName(err) != c.want {
			t.Errorf("%+v: %v, want %q", c.in, err, c.want)
		}
		r.w.procs[pid].kill(r.w)
	}
}
