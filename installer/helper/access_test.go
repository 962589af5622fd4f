package helper

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

// TestAccess is the access table, written a second time: whoever loosens a rule changes it here
// too, by name.
func TestAccess(t *testing.T) {
	type callers struct{ operator, stranger, root, insider bool }
	want := map[string]callers{
		"Plan":     {operator: true, root: true},
		"Attach":   {operator: true, root: true},
		"Join":     {operator: true, root: true},
		"Listen":   {operator: true, root: true},
		"Update":   {operator: true, root: true},
		"Adopt":    {operator: true, root: true},
		"Abandon":  {operator: true, root: true},
		"Teardown": {operator: true, root: true},
		"List":     {operator: true, root: true},
		"Status":   {operator: true, root: true},
		"Verify":   {operator: true, root: true},
		"Count":    {operator: true, root: true},
		"Explain":  {operator: true, root: true, insider: true},
		"Watch":    {operator: true, root: true},
		"Repair":   {root: true},
	}
	if got, all := len(methods()), api.Methods(); got != len(all) || len(want) != got {
		t.Fatalf("%d methods have a rule and %d a row here; the interface has %d", got, len(want), len(all))
	}
	r := newRig(t)
	owner := r.dial(operatorUID, 10)
	box := r.box(owner, api.PlanIn{Name: "web"}, 20)
	r.w.change(r.w.spawn(21, 0), func(p *fakeProc) { p.group = box.Lease })
	callersOf := map[string]*wire{
		"operator": r.dial(operatorUID, 11), "stranger": r.dial(strangerUID, 12), "root": r.dial(0, 13),
		"insider": r.dial(operatorUID, 20), "root inside": r.dial(0, 21),
	}
	for method, may := range want {
		for who, w := range callersOf {
			allowed := map[string]bool{"operator": may.operator, "stranger": may.stranger, "root": may.root,
				"insider": may.insider, "root inside": may.insider}[who]
			t.Run(fmt.Sprint(method, " by ", who), func(t *testing.T) {
				// A lease that nobody has: an allowed call fails for another reason.
				err := w.call(method, probe(method), nil)
				refused := shortName(err) == "NotAllowed"
				if refused == allowed {
					t.Errorf("allowed %v, got %v", allowed, err)
				}
			})
		}
	}
}

// probe is a call of each method that does nothing.
func probe(method string) any {
	const id = "b0000000000000000"
	switch method {
	case "Plan":
		return api.PlanIn{Mode: api.ModeOwnIP, Policy: api.Policy{Egress: api.EgressDeny}}
	case "Explain":
		return api.ExplainIn{Box: id, Destination: "192.0.2.7:443"}
	case "Join":
		return api.JoinIn{Lease: id, Secret: "x", Kind: api.JoinKindExec}
	case "Listen":
		return api.ListenIn{Lease: id, Secret: "x", Protocol: api.ProtocolTCP, Port: 80}
	case "Update":
		return api.UpdateIn{Lease: id, Secret: "x", Policy: new(api.Policy{Egress: api.EgressDeny})}
	case "Attach":
		return api.AttachIn{Lease: id, PID: 1}
	case "Abandon":
		return api.AbandonIn{Lease: id}
	case "Adopt":
		return api.AdoptIn{Lease: id, Secret: "x"}
	case "Teardown":
		return api.TeardownIn{Lease: id, Secret: "x"}
	}
	return nil
}

// TestInsider: a process inside a box may ask about its own box, and about no other.
func TestInsider(t *testing.T) {
	r := newRig(t)
	owner := r.dial(operatorUID, 10)
	r.box(owner, api.PlanIn{Name: "web"}, 20)
	r.box(owner, api.PlanIn{Name: "api"}, 21)
	in := r.dial(operatorUID, 20)
	var out api.ExplainOut
	if err := in.call("Explain", api.ExplainIn{Box: "web", Destination: "192.0.2.7:443"}, &out); err != nil || out.Allowed {
		t.Errorf("own box: %v %+v", err, out)
	}
	if err := in.call("Explain", api.ExplainIn{Box: "api", Destination: "192.0.2.7:443"}, nil); shortName(err) != "NoSuchLease" {
		t.Errorf("another box: %v", err)
	}
}

// TestEndedPeer: a connection whose opener has ended may belong to anybody now, so it may do
// nothing.
func TestEndedPeer(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	r.w.procs[10].kill(r.w)
	if err := w.call("List", nil, nil); shortName(err) != "NotAllowed" {
		t.Errorf("list by a connection whose process ended: %v", err)
	}
}

// TestForeignLease: an operator sees of another's lease its name, address and owner, and can do
// nothing with it, not even with a guessed secret.
func TestForeignLease(t *testing.T) {
	r := newRig(t)
	owner := r.dial(operatorUID, 10)
	box := r.box(owner, api.PlanIn{Name: "web"}, 20)
	other := r.dial(otherUID, 11)
	r.w.spawn(22, otherUID)
	var list api.ListOut
	if err := other.call("List", nil, &list); err != nil {
		t.Fatal(err)
	}
	want := api.LeaseInfo{Name: "web", Address: "127.0.64.1", UID: operatorUID, State: api.LeaseStateAttached}
	if len(list.Leases) != 1 || !reflect.DeepEqual(list.Leases[0], want) {
		t.Errorf("another's lease is listed as %+v", list.Leases)
	}
	for _, method := range []string{"Attach", "Join", "Listen", "Update", "Adopt", "Abandon", "Teardown"} {
		if err := other.call(method, params(method, box), nil); shortName(err) != "NoSuchLease" {
			t.Errorf("%s of a foreign lease with its secret: %v", method, err)
		}
	}
	wrong := box
	wrong.Secret = "guess"
	for _, method := range []string{"Join", "Listen", "Update", "Adopt", "Teardown"} {
		if err := owner.call(method, params(method, wrong), nil); shortName(err) != "WrongSecret" {
			t.Errorf("%s with a wrong secret: %v", method, err)
		}
	}
	if err := other.call("Plan", api.PlanIn{Name: "WEB", Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny}}, nil); shortName(err) != "NameTaken" {
		t.Errorf("first holder keeps a name: %v", err)
	}
}

// TestTargets: which processes may not enter a leaf.
func TestTargets(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	r.box(w, api.PlanIn{}, 20)
	plan := w.plan(api.PlanIn{Name: "web"})
	r.w.spawn(30, otherUID)
	r.w.change(r.w.spawn(31, operatorUID), func(p *fakeProc) { p.unfit = &Unfit{"socket", "it holds an inet socket"} })
	r.w.spawn(32, operatorUID).kill(r.w)
	for pid, want := range map[int]string{30: "ProcessRefused uid", 31: "ProcessRefused socket", 32: "NoSuchProcess", 33: "NoSuchProcess",
		20: "ProcessRefused in_leaf", -4: "InvalidArgument", 0: "InvalidArgument"} {
		err := w.call("Attach", api.AttachIn{Lease: plan.Lease, PID: pid}, nil)
		got := shortName(err)
		if e, ok := err.(*api.ProcessRefused); ok {
			got += " " + e.Reason
		}
		if got != want {
			t.Errorf("attach of process %d: %s (%v), want %s", pid, got, err, want)
		}
	}
	second := r.dial(operatorUID, 11)
	r.w.spawn(34, operatorUID)
	if err := second.call("Attach", api.AttachIn{Lease: plan.Lease, PID: 34}, nil); shortName(err) != "NotAllowed" {
		t.Errorf("attach on another connection of the same account: %v", err)
	}
}

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
