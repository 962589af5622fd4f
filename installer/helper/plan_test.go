package helper

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gominimal/minhost/installer/api"
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
