package helper

import (
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
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

// TestPeerEndsMeanwhile: one that ends while its leaf is read may have been read as another process.
func TestPeerEndsMeanwhile(t *testing.T) {
	var tree *readOf
	r := newRig(t, func(c *Config) { tree = &readOf{Tree: c.Tree}; c.Tree = tree })
	w := r.dial(operatorUID, 10)
	p := r.w.procs[10]
	tree.then.Store(func() { p.kill(r.w) })
	if err := w.call("List", nil, nil); shortName(err) != "NotAllowed" {
		t.Errorf("list by a connection whose process ended while it was looked at: %v", err)
	}
}

// readOf does something behind a look for a leaf.
type readOf struct {
	Tree
	then atomic.Value
}

func (r *readOf) LeafOf(pid int) (string, error) {
	leaf, err := r.Tree.LeafOf(pid)
	if then, ok := r.then.Load().(func()); ok {
		then()
	}
	return leaf, err
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
	if err := other.call("Explain", api.ExplainIn{Box: "web", Destination: "192.0.2.7:443"}, nil); shortName(err) != "NoSuchLease" {
		t.Errorf("explain of a foreign box: %v", err)
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
	if err := owner.call("Teardown", api.TeardownIn{Lease: box.Lease, Secret: box.Secret, Kill: true}, nil); err != nil {
		t.Fatal(err)
	}
	for who, w := range map[string]*wire{"has ended": owner, "no lease": other} { // a stranger learns of none
		if err := w.call("Update", params("Update", box), nil); shortName(err) != "NoSuchLease" || !strings.Contains(err.Error(), who) {
			t.Errorf("update of a lease that has ended: %v, want %q", err, who)
		}
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
