package helper

import (
	"errors"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
)

// boundaryOf is what List says of a box.
func (r *rig) boundaryOf(w *wire, lease string) api.Boundary {
	r.t.Helper()
	var out api.ListOut
	if err := w.call("List", nil, &out); err != nil {
		r.t.Fatal(err)
	}
	for _, l := range out.Leases {
		if l.Lease == lease {
			return l.Boundary
		}
	}
	return ""
}

// TestBoundary: the helper repeats what a runner declared, nothing makes it more, and one process that is not
// declared strict makes it less.
func TestBoundary(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	if got := w.plan(api.PlanIn{}).Boundary; got != api.BoundaryCooperative {
		t.Errorf("a plan that says nothing is %s", got)
	}
	strict := api.PlanIn{Boundary: api.BoundaryStrict}
	for pid, c := range map[int]struct {
		what   string
		change func(p api.PlanOut) (method string, in any)
		err    string
		want   api.Boundary
	}{
		20: {"a strict process joins", func(p api.PlanOut) (string, any) {
			return "Join", api.JoinIn{Lease: p.Lease, Secret: p.Secret, Kind: api.JoinKindExec, PID: 40, Boundary: api.BoundaryStrict}
		}, "", api.BoundaryStrict},
		21: {"another one joins", func(p api.PlanOut) (string, any) {
			return "Join", api.JoinIn{Lease: p.Lease, Secret: p.Secret, Kind: api.JoinKindExec, PID: 41}
		}, "", api.BoundaryCooperative},
		22: {"its runner takes it back", func(p api.PlanOut) (string, any) {
			return "Update", api.UpdateIn{Lease: p.Lease, Secret: p.Secret, Boundary: api.BoundaryCooperative}
		}, "", api.BoundaryCooperative},
		23: {"a new policy", func(p api.PlanOut) (string, any) {
			return "Update", api.UpdateIn{Lease: p.Lease, Secret: p.Secret, Policy: new(api.Policy{Egress: api.EgressOpen})}
		}, "", api.BoundaryStrict},
		24: {"said again", func(p api.PlanOut) (string, any) {
			return "Update", api.UpdateIn{Lease: p.Lease, Secret: p.Secret, Boundary: api.BoundaryStrict}
		}, "", api.BoundaryStrict},
		25: {"nothing", func(p api.PlanOut) (string, any) {
			return "Update", api.UpdateIn{Lease: p.Lease, Secret: p.Secret}
		}, "InvalidArgument", api.BoundaryStrict},
	} {
		p := r.box(w, strict, pid)
		if p.Boundary != api.BoundaryStrict {
			t.Errorf("%s: planned as %s", c.what, p.Boundary)
		}
		r.w.spawn(pid+20, operatorUID)
		method, in := c.change(p)
		if err := w.call(method, in, nil); shortName(err) != c.err {
			t.Errorf("%s: %v, want %q", c.what, err, c.err)
		}
		if got := r.boundaryOf(w, p.Lease); got != c.want {
			t.Errorf("%s: the box is %s, want %s", c.what, got, c.want)
		}
	}
}

// TestBoundaryIsNotRaised: a box whose processes run already does not become strict, and an Update that asks for
// it changes nothing else either.
func TestBoundaryIsNotRaised(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	p := r.box(w, api.PlanIn{Policy: api.Policy{Egress: api.EgressDeny}}, 20)
	in := api.UpdateIn{Lease: p.Lease, Secret: p.Secret, Boundary: api.BoundaryStrict, Policy: new(api.Policy{Egress: api.EgressOpen})}
	if e, ok := w.call("Update", in, nil).(*api.InvalidArgument); !ok || e.Field != "boundary" || e.Next == "" {
		t.Errorf("raised: %v", e)
	}
	if got := r.boundaryOf(w, p.Lease); got != api.BoundaryCooperative {
		t.Errorf("the box is %s", got)
	}
	if got := r.h.boxes[p.Lease].Policy.Egress; got != "deny" {
		t.Errorf("egress is %s", got)
	}
}

// TestBoundaryOutlivesTheHelper, the word as well as its being taken back.
func TestBoundaryOutlivesTheHelper(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	kept, weaker := r.box(w, api.PlanIn{Boundary: api.BoundaryStrict}, 20), r.box(w, api.PlanIn{Boundary: api.BoundaryStrict}, 21)
	if err := w.call("Update", api.UpdateIn{Lease: weaker.Lease, Secret: weaker.Secret, Boundary: api.BoundaryCooperative}, nil); err != nil {
		t.Fatal(err)
	}
	r.stop()
	r.start()
	w = r.dial(operatorUID, 10)
	if a, b := r.boundaryOf(w, kept.Lease), r.boundaryOf(w, weaker.Lease); a != api.BoundaryStrict || b != api.BoundaryCooperative {
		t.Errorf("behind a restart the boxes are %s and %s", a, b)
	}
}

// TestDeclaredAtTheEnd: a word that is taken back while the box ends writes no record behind the one that the end removes.
func TestDeclaredAtTheEnd(t *testing.T) {
	for _, point := range []string{"open", "store"} { // before the look whether it lives, and behind it
		t.Run(point, func(t *testing.T) {
			r := newRig(t)
			w, other := r.dial(operatorUID, 10), r.dial(operatorUID, 11)
			out := r.box(w, api.PlanIn{Boundary: api.BoundaryStrict}, 20)
			r.w.spawn(21, operatorUID)
			declaring := newHalt()
			r.w.setHook(func(at string) error {
				if at == point {
					declaring.pass()
				}
				return nil
			})
			w.begin("Join", api.JoinIn{Lease: out.Lease, Secret: out.Secret, Kind: api.JoinKindExec, PID: 21})
			<-declaring.reached
			other.begin("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret, Kill: true})
			ended := make(chan error, 1)
			go func() { ended <- other.answered() }()
			select { // where it waits, nobody can see it
			case err := <-ended:
				ended <- err
			case <-time.After(50 * time.Millisecond):
			}
			close(declaring.goOn)
			if err := w.answered(); err == nil {
				t.Error("it joined")
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			r.atRest()
		})
	}
}

// TestDeclaredOnRecord: a word that could not be put on record is not taken back in memory only: the next call writes it.
func TestDeclaredOnRecord(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	out := r.box(w, api.PlanIn{Boundary: api.BoundaryStrict}, 20)
	r.w.spawn(21, operatorUID)
	join := api.JoinIn{Lease: out.Lease, Secret: out.Secret, Kind: api.JoinKindExec, PID: 21}
	r.w.setHook(func(at string) error {
		if at == "store" {
			return errors.New("injected")
		}
		return nil
	})
	if err := w.call("Join", join, nil); shortName(err) != "Internal" {
		t.Fatalf("join: %v", err)
	}
	r.w.setHook(nil)
	if err := w.call("Join", join, nil); err != nil {
		t.Fatal(err)
	}
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if r.w.store[out.Lease].Strict {
		t.Error("the record still says strict")
	}
}
