package helper

import (
	"errors"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// TestUpdateIsWhole: an update that fails at any point leaves table and record with the old policy.
func TestUpdateIsWhole(t *testing.T) {
	for _, point := range []string{"store", "put"} {
		t.Run(point, func(t *testing.T) {
			r := newRig(t)
			w := r.dial(operatorUID, 10)
			out := r.box(w, api.PlanIn{Name: "web", Policy: api.Policy{Egress: api.EgressOpen}}, 20)
			failed := false
			r.w.setHook(func(at string) error {
				if at == point && !failed {
					failed = true
					return errors.New("injected")
				}
				return nil
			})
			in := api.UpdateIn{Lease: out.Lease, Secret: out.Secret, Policy: new(api.Policy{Egress: api.EgressDeny})}
			if err := w.call("Update", in, nil); shortName(err) != "Internal" {
				t.Fatalf("update: %v", err)
			}
			r.egress(out.Lease, lease.Open)
			if err := w.call("Update", in, nil); err != nil {
				t.Fatal(err)
			}
			r.egress(out.Lease, lease.Deny)
		})
	}
}

// egress checks that memory, record and table agree.
func (r *rig) egress(id string, want lease.Egress) {
	r.t.Helper()
	r.h.mu.Lock()
	b := r.h.boxes[id]
	memory, leaf := b.Policy.Egress, b.leaf.ID()
	r.h.mu.Unlock()
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if record, table := r.w.store[id].Policy.Egress, r.w.table[leaf].Policy.Egress; memory != want || record != want || table != want {
		r.t.Errorf("memory %s, record %s, table %s, want %s", memory, record, table, want)
	}
}

// TestAddressesRestAcrossRestart: what was given back just before a restart is not given right after it.
func TestAddressesRestAcrossRestart(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	first := w.plan(api.PlanIn{Name: "a"})
	if err := w.call("Abandon", api.AbandonIn{Lease: first.Lease}, nil); err != nil {
		t.Fatal(err)
	}
	r.stop()
	r.start()
	if again := r.dial(operatorUID, 11).plan(api.PlanIn{Name: "b"}); again.Address == first.Address {
		t.Errorf("%s was released a moment ago, and 252 others never", again.Address)
	}
}
