package helper

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

var ownIP = api.PlanIn{Mode: api.ModeOwnIP, Policy: api.Policy{Egress: api.EgressDeny}, Tap: &api.Tap{Address: "10.0.2.15/24", Gateway: "10.0.2.2"}}

// spawnIn makes a process of the operator's in a namespace.
func (w *world) spawnIn(pid int, netns uint64) *fakeProc {
	p := w.spawn(pid, operatorUID)
	w.change(p, func(p *fakeProc) { p.netns = netns })
	return p
}

// took takes the one descriptor that came; nil when none did.
func (w *wire) took() *os.File {
	w.t.Helper()
	if len(w.fds) > 1 {
		w.t.Errorf("%d descriptors came", len(w.fds))
	}
	if len(w.fds) == 0 {
		return nil
	}
	f := w.fds[0]
	w.fds = nil
	w.t.Cleanup(func() { f.Close() })
	return f
}

// heldNets is how many namespaces the helper holds.
func (r *rig) heldNets() int {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	return r.w.nets
}

// tapGone says that nobody holds the other end of the newest tap any more.
func (r *rig) tapGone() bool {
	r.w.mu.Lock()
	tap := r.w.taps[len(r.w.taps)-1]
	r.w.mu.Unlock()
	n, err := tap.Read(make([]byte, 1))
	return n == 0 && err == io.EOF
}

// TestOwnIPLife: the tap comes once, with the reply of Attach; the namespace with Join; all goes with the box.
func TestOwnIPLife(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	plan := w.plan(ownIP)
	r.w.spawnIn(20, 77)
	if err := w.call("Attach", api.AttachIn{Lease: plan.Lease, PID: 20}, nil); err != nil {
		t.Fatal(err)
	}
	tap := w.took()
	if tap == nil {
		t.Fatal("no tap came with the reply")
	}
	r.w.spawn(21, operatorUID)
	var joined api.JoinOut
	if err := w.call("Join", api.JoinIn{Lease: plan.Lease, Secret: plan.Secret, Kind: api.JoinKindTask, PID: 21}, &joined); err != nil {
		t.Fatal(err)
	}
	if w.took() == nil || !joined.Net.Isolate || joined.Net.Tap == nil {
		t.Errorf("Join: no namespace, or net plan %+v", joined.Net)
	}
	if r.heldNets() != 1 {
		t.Errorf("%d namespaces are held", r.heldNets())
	}
	tap.Close()
	if !r.tapGone() {
		t.Error("the helper kept the tap")
	}
	if err := w.call("Teardown", api.TeardownIn{Lease: plan.Lease, Secret: plan.Secret, Kill: true}, nil); err != nil {
		t.Fatal(err)
	}
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if r.w.nets != 0 || r.w.removed != 1 {
		t.Errorf("%d namespaces are held, taps removed %d times", r.w.nets, r.w.removed)
	}
}

// at is the leaf that a process is in.
func (r *rig) at(pid int) string {
	in, err := r.w.LeafOf(pid)
	if err != nil {
		r.t.Error(err)
	}
	return in
}

// TestIsolation: a namespace that cannot be the box's is an error, and nothing is kept of it.
func TestIsolation(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	first, second := w.plan(ownIP), w.plan(api.PlanIn{Mode: api.ModeNone})
	r.w.spawnIn(20, 77)
	if err := w.call("Attach", api.AttachIn{Lease: first.Lease, PID: 20}, nil); err != nil {
		t.Fatal(err)
	}
	w.took()
	attach := func(pid int) string {
		err := w.call("Attach", api.AttachIn{Lease: second.Lease, PID: pid}, nil)
		var refused *api.ProcessRefused
		if errors.As(err, &refused) {
			return refused.Reason
		}
		return shortName(err)
	}
	r.w.spawnIn(30, 0)
	r.w.spawnIn(31, 77)
	r.w.spawnIn(32, 78)
	r.w.spawnIn(33, 78)
	r.w.spawnIn(34, 79)
	for pid, want := range map[int]string{30: reasonHostNet, 31: reasonSharedNet, 32: reasonSharedNet} {
		if got := attach(pid); got != want {
			t.Errorf("process %d: %s, want %s", pid, got, want)
		}
	}
	// Alone in the namespace of a live box, whose own process left it: still the box's.
	r.w.change(r.w.procs[20], func(p *fakeProc) { p.netns = 90 })
	if got := attach(31); got != reasonSharedNet {
		t.Errorf("alone in another box's namespace: %s", got)
	}
	r.w.setHook(func(point string) error {
		if point == "prepare" {
			return &Unfit{"network_not_empty", "it has eth9"}
		}
		return nil
	})
	if got := attach(34); got != "network_not_empty" {
		t.Errorf("a namespace with devices: %s", got)
	}
	r.w.setHook(func(point string) error {
		if point == "move" { // it goes elsewhere while it is moved
			r.w.change(r.w.procs[34], func(p *fakeProc) { p.netns = 0 })
		}
		return nil
	})
	if got := attach(34); got != reasonSharedNet || r.at(34) != "" {
		t.Errorf("a process that left its namespace: %s, it is in %q", got, r.at(34))
	}
	r.w.setHook(nil)
	if r.heldNets() != 1 {
		t.Errorf("%d namespaces are held, one box is live", r.heldNets())
	}
	r.w.change(r.w.procs[34], func(p *fakeProc) { p.netns = 79 })
	if got := attach(34); got != "" || w.took() != nil {
		t.Errorf("none: %s", got)
	}
}

// TestTapOfAFailedAttach: whatever fails, no tap and no namespace stays, and the lease can be attached again.
func TestTapOfAFailedAttach(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	plan := w.plan(ownIP)
	r.w.spawnIn(20, 77)
	for _, point := range []string{"store", "put", "prepare", "move"} {
		r.w.setHook(func(p string) error {
			if p == point {
				return errors.New("made to fail")
			}
			return nil
		})
		if err := w.call("Attach", api.AttachIn{Lease: plan.Lease, PID: 20}, nil); shortName(err) != "Internal" {
			t.Errorf("%s fails: %v", point, err)
		}
		if w.took() != nil || r.heldNets() != 0 {
			t.Errorf("%s fails: a descriptor came, or %d namespaces are held", point, r.heldNets())
		}
	}
	if !r.tapGone() {
		t.Error("a tap of a failed attach is open")
	}
	r.w.setHook(nil)
	if err := w.call("Attach", api.AttachIn{Lease: plan.Lease, PID: 20}, nil); err != nil || w.took() == nil {
		t.Errorf("behind the failures: %v", err)
	}
}

// TestNamespaceBehindARestart: the next helper finds the namespace through the box's processes, by its number; one
// that no process of the box is in is gone, and nobody joins.
func TestNamespaceBehindARestart(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	plan := w.plan(ownIP)
	r.w.spawnIn(20, 77)
	if err := w.call("Attach", api.AttachIn{Lease: plan.Lease, PID: 20}, nil); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		net  uint64
		want string
	}{{77, ""}, {78, "WrongState"}, {0, "WrongState"}} {
		r.w.change(r.w.procs[20], func(p *fakeProc) { p.netns = c.net })
		r.stop()
		r.start()
		w := r.dial(operatorUID, 10)
		r.w.spawn(30+i, operatorUID)
		err := w.call("Join", api.JoinIn{Lease: plan.Lease, Secret: plan.Secret, Kind: api.JoinKindTask, PID: 30 + i}, nil)
		if shortName(err) != c.want || (w.took() != nil) != (c.want == "") {
			t.Errorf("in namespace %d: %v, want %q", c.net, err, c.want)
		}
		if in := r.at(30 + i); (in == plan.Lease) != (c.want == "") {
			t.Errorf("in namespace %d: the joiner is in %q", c.net, in)
		}
	}
}
