package helper

import (
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
)

// TestMendBesideAnEnd: a refill holds what lives when it is done: the verdict of a box that ends meanwhile does not come
// back with it. Nor does it bring one that was never live.
func TestMendBesideAnEnd(t *testing.T) {
	r := newRig(t)
	w, root := r.dial(operatorUID, 10), r.dial(0, 11)
	w.plan(api.PlanIn{})
	box := r.box(w, api.PlanIn{Name: "web"}, 20)
	r.w.mu.Lock()
	clear(r.w.table)
	r.w.mu.Unlock()
	filling := newHalt()
	r.w.setHook(func(at string) error {
		if at == "refill" {
			filling.pass()
		}
		return nil
	})
	root.begin("Repair", nil)
	<-filling.reached
	w.begin("Teardown", api.TeardownIn{Lease: box.Lease, Secret: box.Secret, Kill: true})
	ended := make(chan error, 1)
	go func() { ended <- w.answered() }()
	select { // where it waits, nobody can see it
	case err := <-ended:
		ended <- err
	case <-time.After(50 * time.Millisecond):
	}
	close(filling.goOn)
	if err := root.answered(); err != nil {
		t.Errorf("repair: %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("teardown: %v", err)
	}
	w.c.Close()
	r.atRest()
}

// TestPlansHaveNoVerdict: neither a refill nor a comparison takes a plan for a box.
func TestPlansHaveNoVerdict(t *testing.T) {
	r := newRig(t)
	w, root := r.dial(operatorUID, 10), r.dial(0, 11)
	w.plan(api.PlanIn{})
	var out api.RepairOut
	if err := root.call("Repair", nil, &out); err != nil || len(out.Differences) != 0 {
		t.Errorf("%v, %v", err, out)
	}
	w.c.Close()
	r.atRest()
}

// TestLeavesAreVerified: a leaf that is gone, one that was made again, and one that is no lease's.
func TestLeavesAreVerified(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	gone, again := w.plan(api.PlanIn{Name: "gone"}), w.plan(api.PlanIn{Name: "again"})
	w.plan(api.PlanIn{})
	found := func() api.Check {
		t.Helper()
		var out api.VerifyOut
		if err := w.call("Verify", api.VerifyIn{}, &out); err != nil {
			t.Fatal(err)
		}
		for _, c := range out.Checks {
			if c.Name == "leaves match the leases" {
				return c
			}
		}
		return api.Check{}
	}
	if c := found(); c.State != api.CheckStateOK || c.Detail != "3 leaves" {
		t.Errorf("before: %+v", c)
	}
	if _, err := r.w.Create("stray"); err != nil {
		t.Fatal(err)
	}
	r.w.mu.Lock()
	old := r.w.leaves[again.Lease]
	r.w.leaves[again.Lease] = &fakeLeaf{r.w, again.Lease, 7}
	delete(r.w.leaves, gone.Lease)
	r.w.mu.Unlock()
	c := found()
	for _, words := range []string{"the leaf of box gone is gone", "the leaf of box again was made again", "stray is no lease's leaf"} {
		if c.State != api.CheckStateFailed || !strings.Contains(c.Detail, words) {
			t.Errorf("%+v lacks %q", c, words)
		}
	}
	r.w.mu.Lock()
	r.w.leaves[again.Lease] = old
	delete(r.w.leaves, "stray")
	r.w.mu.Unlock()
	w.c.Close()
	r.atRest()
}
