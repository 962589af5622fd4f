package helper

import (
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// TestJoinBesideTeardown: a teardown without kill that comes while a process joins ends none: neither that one, nor
// who was there before.
func TestJoinBesideTeardown(t *testing.T) {
	for name, empty := range map[string]bool{"with another process": false, "alone": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.Grace = time.Hour })
			w, other := r.dial(operatorUID, 10), r.dial(operatorUID, 11)
			out := r.box(w, api.PlanIn{Name: "web"}, 20)
			r.w.spawn(21, operatorUID)
			move, look := newHalt(), newHalt()
			r.w.setHook(func(at string) error {
				switch at {
				case "move":
					move.pass()
				case "have pids":
					look.pass()
				}
				return nil
			})
			if empty {
				r.w.procs[20].kill(r.w)
			}
			w.begin("Join", api.JoinIn{Lease: out.Lease, Secret: out.Secret, Kind: api.JoinKindExec, PID: 21})
			<-move.reached
			other.begin("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret})
			r.eventually("the teardown looks, or waits for the join", func() bool { return look.isReached() || r.doorHeld(out.Lease) })
			close(move.goOn)
			if err := w.answered(); err != nil {
				t.Errorf("join: %v", err)
			}
			close(look.goOn)
			if err := other.answered(); shortName(err) != "Busy" {
				t.Errorf("teardown: %v", err)
			}
			r.w.setHook(nil)
			if r.at(20) != out.Lease || r.at(21) != out.Lease || r.dead(20) != empty || r.dead(21) {
				t.Errorf("processes are in %q and %q, dead: %v, %v", r.at(20), r.at(21), r.dead(20), r.dead(21))
			}
			if err := w.call("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret, Kill: true}, nil); err != nil {
				t.Error(err)
			}
			r.atRest()
		})
	}
}

func (p *halt) isReached() bool {
	select {
	case <-p.reached:
		return true
	default:
		return false
	}
}

// doorHeld says that somebody sees to it that nobody joins a box, or waits for that.
func (r *rig) doorHeld(id string) bool {
	r.h.mu.Lock()
	b := r.h.boxes[id]
	r.h.mu.Unlock()
	if b.moving.TryRLock() {
		b.moving.RUnlock()
		return false
	}
	return true
}

// TestJoinBehindTheLook: who comes when the leaf was found empty does not get in, and is not killed for it.
func TestJoinBehindTheLook(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Grace = time.Hour })
	w, other := r.dial(operatorUID, 10), r.dial(operatorUID, 11)
	out := r.box(w, api.PlanIn{Name: "web"}, 20)
	r.w.spawn(21, operatorUID)
	move, look := newHalt(), newHalt()
	close(move.goOn)
	r.w.setHook(func(at string) error {
		switch at {
		case "move":
			move.pass()
		case "have pids":
			look.pass()
		}
		return nil
	})
	r.w.procs[20].kill(r.w)
	other.begin("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret})
	<-look.reached
	w.begin("Join", api.JoinIn{Lease: out.Lease, Secret: out.Secret, Kind: api.JoinKindExec, PID: 21})
	select { // it waits, which nobody can see
	case <-move.reached:
	case <-time.After(50 * time.Millisecond):
	}
	close(look.goOn)
	if err := other.answered(); err != nil {
		t.Errorf("teardown: %v", err)
	}
	if err := w.answered(); shortName(err) != "WrongState" && shortName(err) != "NoSuchLease" {
		t.Errorf("join: %v", err)
	}
	if r.at(21) != "" || r.dead(21) {
		t.Errorf("the process is in %q, dead: %v", r.at(21), r.dead(21))
	}
	r.atRest()
}

// TestJoinOfAKilledBox: what gets in behind the kill does not run on.
func TestJoinOfAKilledBox(t *testing.T) {
	r := newRig(t)
	w, other := r.dial(operatorUID, 10), r.dial(operatorUID, 11)
	out := r.box(w, api.PlanIn{Name: "web"}, 20)
	r.w.spawn(21, operatorUID)
	move, killed := newHalt(), newHalt()
	r.w.setHook(func(at string) error {
		switch at {
		case "move":
			move.pass()
		case "rmdir":
			killed.pass()
		}
		return nil
	})
	w.begin("Join", api.JoinIn{Lease: out.Lease, Secret: out.Secret, Kind: api.JoinKindExec, PID: 21})
	<-move.reached
	other.begin("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret, Kill: true})
	<-killed.reached
	close(move.goOn)
	if err := w.answered(); shortName(err) != "NoSuchLease" || !r.dead(21) {
		t.Errorf("join: %v, dead: %v", err, r.dead(21))
	}
	close(killed.goOn)
	if err := other.answered(); err != nil {
		t.Errorf("teardown: %v", err)
	}
	r.atRest()
}

// TestJoinOfAnEndingBox: what did not get in before the box ended does not get in, and is left alone.
func TestJoinOfAnEndingBox(t *testing.T) {
	r := newRig(t)
	w, other := r.dial(operatorUID, 10), r.dial(operatorUID, 11)
	out := r.box(w, api.PlanIn{Name: "web"}, 20)
	r.w.spawn(21, operatorUID)
	open := newHalt()
	r.w.setHook(func(at string) error {
		if at == "open" {
			open.pass()
		}
		return nil
	})
	w.begin("Join", api.JoinIn{Lease: out.Lease, Secret: out.Secret, Kind: api.JoinKindExec, PID: 21})
	<-open.reached
	r.force(out.Lease, lease.Ending)
	close(open.goOn)
	if err := w.answered(); shortName(err) != "WrongState" {
		t.Errorf("join: %v", err)
	}
	if r.at(21) != "" || r.dead(21) {
		t.Errorf("the process is in %q, dead: %v", r.at(21), r.dead(21))
	}
	r.force(out.Lease, lease.Attached)
	if err := other.call("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret, Kill: true}, nil); err != nil {
		t.Error(err)
	}
	r.atRest()
}
