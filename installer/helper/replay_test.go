package helper

import (
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// TestReplayedBoxesLive: a box that a helper takes up ends as one of its own: when its last process does, once, and its
// number is not the next one's.
func TestReplayedBoxesLive(t *testing.T) {
	r := newRig(t)
	r.box(r.dial(operatorUID, 10), api.PlanIn{Name: "web"}, 20)
	r.stop()
	r.start()
	r.h.mu.Lock()
	b := r.h.names["web"]
	r.h.mu.Unlock()
	r.w.procs[20].kill(r.w)
	r.eventually("it has ended", func() bool {
		select {
		case <-b.over:
			return true
		default:
			return false
		}
	})
	w := r.dial(operatorUID, 10)
	out := w.plan(api.PlanIn{})
	r.h.mu.Lock()
	if n := r.h.boxes[out.Lease].Number; n == b.Number {
		t.Errorf("the next box has its number, %d", n)
	}
	r.h.mu.Unlock()
	w.c.Close()
	r.atRest()
}

// TestReplayOfAnEnd: a box that was ending ends, although a process of it lives.
func TestReplayOfAnEnd(t *testing.T) {
	r := newRig(t)
	out := r.box(r.dial(operatorUID, 10), api.PlanIn{Name: "web"}, 20)
	r.stop()
	r.w.mu.Lock()
	l := r.w.store[out.Lease]
	l.State = lease.Ending
	r.w.store[out.Lease] = l
	r.w.mu.Unlock()
	r.start()
	r.atRest()
	if !r.dead(20) {
		t.Error("its process lives")
	}
}

// TestSweep removes leaves that were plans, and nothing else: neither what is no lease's, nor what has processes.
func TestSweep(t *testing.T) {
	r := newRig(t)
	r.stop()
	for _, id := range []string{"b0000000000000001", "b0000000000000002", "somebody's"} {
		if _, err := r.w.Create(id); err != nil {
			t.Fatal(err)
		}
	}
	r.w.change(r.w.spawn(20, operatorUID), func(p *fakeProc) { p.group = "b0000000000000002" })
	r.start()
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if r.w.leaves["b0000000000000001"] != nil || r.w.leaves["b0000000000000002"] == nil || r.w.leaves["somebody's"] == nil {
		t.Errorf("leaves: %v", r.w.leaves)
	}
}

// TestOrphanEndsOnce: a box that nobody adopts is ended when the time is over, unless it ends already.
func TestOrphanEndsOnce(t *testing.T) {
	r := newRig(t)
	out := r.box(r.dial(operatorUID, 10), api.PlanIn{Name: "web", EndWithConnection: true}, 20)
	r.stop()
	r.start()
	ending := newHalt()
	r.w.setHook(func(at string) error {
		if at == "rmdir" {
			ending.pass()
		}
		return nil
	})
	w := r.dial(operatorUID, 10)
	w.begin("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret, Kill: true})
	<-ending.reached
	time.Sleep(3 * r.h.cfg.AdoptWithin) // behind which nothing is to be seen
	close(ending.goOn)
	if err := w.answered(); err != nil {
		t.Error(err)
	}
	r.atRest()
}

// TestNamespacesOfAHelperThatEnds: it lets go of them. Boxes go on.
func TestNamespacesOfAHelperThatEnds(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	out := w.plan(api.PlanIn{Mode: api.ModeNone})
	r.w.spawnIn(20, 77)
	if err := w.call("Attach", api.AttachIn{Lease: out.Lease, PID: 20}, nil); err != nil {
		t.Fatal(err)
	}
	r.stop()
	if n := r.heldNets(); n != 0 || r.dead(20) {
		t.Errorf("%d are held, dead: %v", n, r.dead(20))
	}
	r.start()
	r.w.procs[20].kill(r.w)
	r.atRest()
}
