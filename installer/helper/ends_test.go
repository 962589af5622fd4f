package helper

import (
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// TestLastOneMovedOut: a leaf may be empty because somebody moved its last process out: the end of the box ends that
// as well.
func TestLastOneMovedOut(t *testing.T) {
	r := newRig(t)
	r.box(r.dial(operatorUID, 10), api.PlanIn{Name: "web"}, 20)
	r.w.change(r.w.procs[20], func(p *fakeProc) { p.group = "" })
	r.atRest()
	if !r.dead(20) {
		t.Error("it runs on outside")
	}
}

// TestNothingIsTakenFromTheLiving: as long as the processes of an ending box cannot be killed they keep the tap, the sockets
// and the own localhost: what would be left without them is the host's. They reach nothing either way.
func TestNothingIsTakenFromTheLiving(t *testing.T) {
	for name, in := range map[string]api.PlanIn{"own_ip": ownIP, "host": {Name: "web"}} {
		t.Run(name, func(t *testing.T) {
			f := &fakeLocalhost{homes: map[uint64]lease.Home{}}
			r := newRig(t, func(c *Config) { c.Localhost = f })
			w := r.dial(operatorUID, 10)
			out := w.plan(in)
			r.w.spawnIn(20, 77)
			if err := w.call("Attach", api.AttachIn{Lease: out.Lease, PID: 20}, nil); err != nil {
				t.Fatal(err)
			}
			w.took()
			homes := len(f.all())
			again := newHalt()
			failed := 0
			r.w.setHook(func(at string) error {
				if at != "kill" {
					return nil
				}
				if failed++; failed == 2 { // all that the first try did is done
					again.pass()
				}
				if failed < 3 {
					return errors.New("injected")
				}
				return nil
			})
			w.begin("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret, Kill: true})
			<-again.reached
			r.w.mu.Lock()
			if len(r.w.ends) != 0 || r.w.removed != 0 || len(r.w.table) != 0 {
				t.Errorf("sockets of %v were ended, taps removed %d times, %d verdicts are left", r.w.ends, r.w.removed, len(r.w.table))
			}
			r.w.mu.Unlock()
			if n := len(f.all()); n != homes {
				t.Errorf("%d homes are left of %d", n, homes)
			}
			close(again.goOn)
			if err := w.answered(); shortName(err) != "Internal" {
				t.Errorf("teardown: %v", err)
			}
			r.atRest()
			r.w.mu.Lock()
			defer r.w.mu.Unlock()
			if len(r.w.ends) == 0 || r.w.removed == 0 && in.Mode == api.ModeOwnIP {
				t.Errorf("at the end sockets of %v were ended, taps removed %d times", r.w.ends, r.w.removed)
			}
		})
	}
}

// TestWaitsNoLonger: who waits for an end that somebody else began, and goes away, waits no longer.
func TestWaitsNoLonger(t *testing.T) {
	r := newRig(t)
	w, other := r.dial(operatorUID, 10), r.dial(operatorUID, 11)
	out := r.box(w, api.PlanIn{Name: "web"}, 20)
	ending := newHalt()
	r.w.setHook(func(at string) error {
		if at == "rmdir" {
			ending.pass()
		}
		return nil
	})
	in := api.TeardownIn{Lease: out.Lease, Secret: out.Secret, Kill: true}
	w.begin("Teardown", in)
	<-ending.reached
	open := r.connections()
	other.begin("Teardown", in)
	other.c.Close()
	r.eventually("the other one is let go", func() bool { return r.connections() == open-1 })
	close(ending.goOn)
	if err := w.answered(); err != nil {
		t.Error(err)
	}
	r.atRest()
}

// TestNothingIsKeptOfTheEnded: of a box that has ended no process is held, and how it ended is forgotten in time.
func TestNothingIsKeptOfTheEnded(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	var boxes []*box
	for pid := 20; pid < 23; pid++ {
		out := r.box(w, api.PlanIn{}, pid)
		r.h.mu.Lock()
		boxes = append(boxes, r.h.boxes[out.Lease])
		r.h.mu.Unlock()
		r.w.procs[pid].kill(r.w)
		r.atRest()
		r.advance(rememberGone)
	}
	r.h.mu.Lock()
	if n := len(r.h.gone); n != 1 {
		t.Errorf("%d ends are remembered", n)
	}
	r.h.mu.Unlock()
	for _, b := range boxes {
		r.eventually("nobody is held", func() bool { // behind its end
			b.members.mu.Lock()
			defer b.members.mu.Unlock()
			return b.members.closed && len(b.members.held) == 0
		})
	}
}

// TestWatchFails: who cannot watch a leaf, for want of descriptors for example, looks at it again: its box ends.
func TestWatchFails(t *testing.T) {
	r := newRig(t)
	var tried atomic.Int32
	r.w.setHook(func(at string) error {
		if at == "wait empty" {
			tried.Add(1)
			return syscall.EMFILE
		}
		return nil
	})
	r.box(r.dial(operatorUID, 10), api.PlanIn{Name: "web", Policy: api.Policy{Egress: api.EgressDeny}}, 20)
	r.eventually("it is tried again", func() bool { return tried.Load() > 2 })
	r.h.mu.Lock()
	if r.h.counts.teardowns != 0 {
		t.Error("a box whose leaf cannot be watched was ended")
	}
	r.h.mu.Unlock()
	r.w.procs[20].kill(r.w)
	r.atRest()
}

// TestRulesOfTheAbandoned: who plans and abandons again and again leaves a minute of short words behind, not of rules.
func TestRulesOfTheAbandoned(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	out := w.plan(api.PlanIn{Policy: api.Policy{Egress: api.EgressOpen, DenySubnets: []string{"192.0.2.0/24"}}})
	if err := w.call("Abandon", api.AbandonIn{Lease: out.Lease}, nil); err != nil {
		t.Fatal(err)
	}
	r.atRest()
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	if e, ok := r.h.gone[out.Lease]; !ok || len(e.lease.Policy.DenySubnets) > 0 {
		t.Errorf("remembered %t: %+v", ok, e.lease.Policy)
	}
}

// TestTeardownOfTheEnding: who asks for the end of a box that ends already, without kill too, gets the same answer.
func TestTeardownOfTheEnding(t *testing.T) {
	r := newRig(t)
	w, other := r.dial(operatorUID, 10), r.dial(operatorUID, 11)
	out := r.box(w, api.PlanIn{}, 20)
	killing := newHalt()
	r.w.setHook(func(at string) error {
		if at == "kill" {
			killing.pass()
		}
		return nil
	})
	w.begin("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret, Kill: true})
	<-killing.reached
	other.begin("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret})
	ended := make(chan error, 1)
	go func() { ended <- other.answered() }()
	select { // that it waits, nobody can see
	case err := <-ended:
		ended <- err
	case <-time.After(50 * time.Millisecond):
	}
	close(killing.goOn)
	for _, err := range []error{w.answered(), <-ended} {
		if err != nil {
			t.Error(err)
		}
	}
	r.atRest()
}
