package helper

import (
	"errors"
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

// TestIsolationInDoubt: a namespace that cannot be proven to be the box's own is none, and none is kept.
func TestIsolationInDoubt(t *testing.T) {
	for point, want := range map[string]string{"netns of 20": "NoSuchProcess", "host's netns": "Internal", "users": "Internal"} {
		t.Run(point, func(t *testing.T) {
			r := newRig(t)
			w := r.dial(operatorUID, 10)
			plan := w.plan(api.PlanIn{Mode: api.ModeNone})
			r.w.spawnIn(20, 77)
			looked := false
			r.w.setHook(r.nth(point, 1, func() error {
				if want == "Internal" {
					return errors.New("injected")
				}
				return ends(r, nil)
			}, func(at string) { looked = looked || at == "users" }))
			if err := w.call("Attach", api.AttachIn{Lease: plan.Lease, PID: 20}, nil); shortName(err) != want {
				t.Error(err)
			}
			r.mu.Lock()
			if looked != (point == "users") {
				t.Error("the namespace of a process that ended was taken")
			}
			r.mu.Unlock()
			w.c.Close()
			r.atRest()
			if n := r.heldNets(); n != 0 {
				t.Errorf("%d namespaces are held", n)
			}
		})
	}
}

// TestRefindInDoubt: behind a restart a number that was recorded may be another namespace's. That of the host is no
// box's, one that two boxes recorded is that of one, and a process that is not in the leaf any more tells nothing.
func TestRefindInDoubt(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	boxes := map[string]api.PlanOut{}
	for i, name := range []string{"hosts", "one", "two", "left", "kept"} {
		out := w.plan(api.PlanIn{Name: name, Mode: api.ModeNone})
		r.w.spawnIn(20+i, uint64(77+i))
		if err := w.call("Attach", api.AttachIn{Lease: out.Lease, PID: 20 + i}, nil); err != nil {
			t.Fatal(err)
		}
		boxes[name] = out
	}
	r.stop()
	r.w.mu.Lock()
	record := func(name string, pid int, netns uint64) {
		l := r.w.store[boxes[name].Lease]
		l.NetNS = netOf(&fakeProc{netns: netns})
		r.w.store[l.ID], r.w.procs[pid].netns = l, netns
	}
	record("hosts", 20, 0)
	record("one", 21, 79)
	record("two", 22, 79)
	r.w.mu.Unlock()
	r.w.setHook(func(at string) error {
		if at == "netns of 23" { // seen in the leaf, and moved before it was looked at
			r.w.change(r.w.procs[23], func(p *fakeProc) { p.group = "" })
		}
		return nil
	})
	r.start()
	r.w.setHook(nil)
	w = r.dial(operatorUID, 10)
	found := map[string]bool{}
	for i, name := range []string{"hosts", "one", "two", "left", "kept"} {
		r.w.spawn(40+i, operatorUID)
		err := w.call("Join", api.JoinIn{Lease: boxes[name].Lease, Secret: boxes[name].Secret, Kind: api.JoinKindExec, PID: 40 + i}, nil)
		found[name] = err == nil
		w.took()
	}
	if found["hosts"] || found["one"] == found["two"] || found["left"] || !found["kept"] {
		t.Errorf("found: %v", found)
	}
	for i := range 5 {
		r.w.procs[20+i].kill(r.w)
		r.w.procs[40+i].kill(r.w)
	}
	r.atRest()
	if n := r.heldNets(); n != 0 {
		t.Errorf("%d namespaces are held", n)
	}
}

// TestNoTapOfNone: of a box without a tap none is removed: its namespace is not asked.
func TestNoTapOfNone(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	out := w.plan(api.PlanIn{Mode: api.ModeNone})
	r.w.spawnIn(20, 77)
	if err := w.call("Attach", api.AttachIn{Lease: out.Lease, PID: 20}, nil); err != nil {
		t.Fatal(err)
	}
	r.w.procs[20].kill(r.w)
	r.atRest()
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if r.w.removed != 0 {
		t.Error("taps were removed")
	}
}
