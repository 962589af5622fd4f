package helper

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/api"
)

// TestRulesInDoubt: what cannot be told about a caller is no permission, and who is refused reads why.
func TestRulesInDoubt(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Operators = func(p Peer) (bool, error) {
			if p.UID == strangerUID {
				return true, errors.New("half a file")
			}
			return p.UID == operatorUID, nil
		}
	})
	for _, c := range []struct {
		uid  uint32
		rule who
		want string
	}{
		{strangerUID, operators, "half a file"}, {otherUID, operators, "not an operator"}, {operatorUID, rootOnly, "not root"},
		{operatorUID, nobody, "nobody may"}, {0, nobody, "nobody may"}, {0, rootOnly, ""}, {operatorUID, operators, ""}, {operatorUID, insiders, ""},
	} {
		r.w.spawn(10, c.uid)
		peer := NewPeer(c.uid, 10, nil, func() error { return nil }, nil)
		got, err := r.h.admit(c.rule, "Something", &conn{peer: peer})
		if c.want == "" && (err != nil || got == nil) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("uid %d, rule %d: %v, want %q", c.uid, c.rule, err, c.want)
		}
	}
}

// TestUnknownPeer: a peer of which nobody can tell whether it lives may do nothing.
func TestUnknownPeer(t *testing.T) {
	if (Peer{}).Alive() == nil {
		t.Error("it is taken for one that lives")
	}
}

// TestNoSuchMethod: what the interface has not is not there, whoever asks, and in any letter case.
func TestNoSuchMethod(t *testing.T) {
	r := newRig(t)
	for _, uid := range []uint32{0, operatorUID, strangerUID} {
		w := r.dial(uid, 10+int(uid))
		for _, name := range []string{"Open", "list", ""} {
			if a := w.raw(`{"method":"dev.minimal.Host.` + name + `"}`); a.Error != "org.varlink.service.MethodNotFound" {
				t.Errorf("uid %d, %q: %s %s", uid, name, a.Error, a.Parameters)
			}
		}
	}
}

// TestUnknownIsABox: the connections of a process whose leaf cannot be read are counted as those of a box, and apart
// from every box: neither its runner's account nor one that is known pays for them.
func TestUnknownIsABox(t *testing.T) {
	r := newRig(t)
	r.box(r.dial(operatorUID, 10), api.PlanIn{Name: "web"}, 20)
	for range maxConnections - 1 {
		r.dial(operatorUID, 10)
	}
	r.w.spawn(30, operatorUID)
	r.w.setHook(func(at string) error {
		if at == "leaf of 30" {
			return errors.New("cannot be read")
		}
		return nil
	})
	for range maxFromInside {
		r.dial(operatorUID, 30)
	}
	if limit := r.refused(operatorUID, 30); limit != maxFromInside {
		t.Errorf("one more: limit %d, want %d", limit, maxFromInside)
	}
	r.dial(operatorUID, 20)
}

// TestPlanInTheMaking: nobody finds a box whose leaf is not made yet, root neither.
func TestPlanInTheMaking(t *testing.T) {
	r := newRig(t)
	w, root := r.dial(operatorUID, 10), r.dial(0, 11)
	making := newHalt()
	r.w.setHook(func(at string) error {
		if at == "mkdir" {
			making.pass()
		}
		return nil
	})
	w.begin("Plan", api.PlanIn{Name: "web", Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny}})
	<-making.reached
	r.h.mu.Lock()
	id := r.h.names["web"].ID
	r.h.mu.Unlock()
	r.w.spawn(21, 0)
	for _, method := range []string{"Attach", "Join", "Listen", "Update", "Adopt", "Abandon", "Teardown"} {
		if err := root.call(method, params(method, api.PlanOut{Lease: id, Secret: "guess"}), nil); shortName(err) != "NoSuchLease" {
			t.Errorf("%s: %v", method, err)
		}
	}
	if err := root.call("Explain", api.ExplainIn{Box: "web", Destination: "192.0.2.7:443"}, nil); shortName(err) != "NoSuchLease" {
		t.Errorf("explain: %v", err)
	}
	var list api.ListOut
	if err := root.call("List", nil, &list); err != nil || len(list.Leases) != 0 {
		t.Errorf("list: %v %+v", err, list)
	}
	var status api.StatusOut
	if err := root.call("Status", nil, &status); err != nil {
		t.Error(err)
	}
	close(making.goOn)
	if err := w.answered(); err != nil {
		t.Error(err)
	}
	w.c.Close()
	r.atRest()
}

// TestRootMay: what is its account's alone, root may have as well: with the secret, where there is one, and only what
// was planned stays with its connection.
func TestRootMay(t *testing.T) {
	r := newRig(t)
	owner, root := r.dial(operatorUID, 10), r.dial(0, 11)
	plan := owner.plan(api.PlanIn{})
	r.w.spawn(21, operatorUID)
	if err := root.call("Attach", params("Attach", plan), nil); shortName(err) != "NotAllowed" {
		t.Errorf("attach of another's plan: %v", err)
	}
	box := r.box(owner, api.PlanIn{Name: "web"}, 20)
	if err := root.call("Explain", api.ExplainIn{Box: "web", Destination: "192.0.2.7:443"}, nil); err != nil {
		t.Errorf("explain: %v", err)
	}
	for _, method := range []string{"Join", "Listen", "Update", "Adopt", "Teardown"} { // another user's process, too
		if err := root.call(method, params(method, box), nil); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	for _, c := range []struct {
		w    *wire
		what string
		want string
	}{
		{r.dial(operatorUID, 12), "by another connection", "NoSuchLease"}, {root, "by root", "NoSuchLease"},
	} {
		if err := c.w.call("Abandon", api.AbandonIn{Lease: box.Lease}, nil); shortName(err) != c.want {
			t.Errorf("abandon of a box that was torn down, %s: %v", c.what, err)
		}
	}
	own := root.plan(api.PlanIn{})
	r.w.spawn(22, otherUID)
	if err := root.call("Attach", api.AttachIn{Lease: own.Lease, PID: 22}, nil); err != nil {
		t.Errorf("attach of another user's process: %v", err)
	}
	if err := r.dial(0, 13).call("Abandon", api.AbandonIn{Lease: own.Lease}, nil); shortName(err) != "WrongState" {
		t.Errorf("abandon of a box: %v", err)
	}
	r.w.procs[22].kill(r.w)
}

// sendFDs sends a call with descriptors.
func (w *wire) sendFDs(n int, method string, in any) error {
	w.t.Helper()
	b, err := json.Marshal(in)
	if err != nil {
		w.t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		w.t.Fatal(err)
	}
	defer null.Close()
	var fds []int
	for range n {
		fds = append(fds, int(null.Fd()))
	}
	text := fmt.Sprintf("{\"method\":\"dev.minimal.Host.%s\",\"parameters\":%s}\x00", method, b)
	if _, _, err := w.c.WriteMsgUnix([]byte(text), unix.UnixRights(fds...), nil); err != nil {
		w.t.Fatal(err)
	}
	return w.answered()
}

// TestOneTarget: a call names one process, by its number or by its handle.
func TestOneTarget(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	plan := w.plan(api.PlanIn{})
	r.w.spawn(20, operatorUID)
	r.w.spawn(21, operatorUID)
	for _, c := range []struct{ fds, pid int }{{2, 0}, {1, 21}, {2, 21}, {0, 0}, {0, -1}, {0, 1<<22 + 1}} {
		in := api.AttachIn{Lease: plan.Lease, PID: c.pid}
		var err error
		if c.fds > 0 {
			err = w.sendFDs(c.fds, "Attach", in)
		} else {
			err = w.call("Attach", in, nil)
		}
		if e, ok := err.(*api.InvalidArgument); !ok || e.Field != "pid" {
			t.Errorf("%d handles, pid %d: %v", c.fds, c.pid, err)
		}
	}
	if err := w.sendFDs(1, "Attach", api.AttachIn{Lease: plan.Lease}); err != nil {
		t.Error(err)
	}
	if r.at(20) != plan.Lease || r.at(21) != "" {
		t.Errorf("the processes are in %q and %q", r.at(20), r.at(21))
	}
	r.w.procs[20].kill(r.w)
	r.atRest()
}
