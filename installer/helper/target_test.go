package helper

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

// TestTargetsOfJoin: who may not be attached may not join either.
func TestTargetsOfJoin(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	r.box(w, api.PlanIn{}, 20)
	box := r.box(w, api.PlanIn{Name: "web"}, 21)
	r.w.spawn(30, otherUID)
	r.w.change(r.w.spawn(31, operatorUID), func(p *fakeProc) { p.unfit = &Unfit{"socket", "it holds an inet socket"} })
	r.w.spawn(32, operatorUID).kill(r.w)
	for pid, want := range map[int]string{30: "ProcessRefused uid", 31: "ProcessRefused socket", 32: "NoSuchProcess", 33: "NoSuchProcess",
		20: "ProcessRefused in_leaf", 21: "ProcessRefused in_leaf", 0: "InvalidArgument"} {
		err := w.call("Join", api.JoinIn{Lease: box.Lease, Secret: box.Secret, Kind: api.JoinKindExec, PID: pid}, nil)
		got := shortName(err)
		if e, ok := err.(*api.ProcessRefused); ok {
			got += " " + e.Reason
		}
		if got != want {
			t.Errorf("join of process %d: %s (%v), want %s", pid, got, err, want)
		}
	}
}

// TestTargetInDoubt: a process that ends while it is looked at, or that cannot be looked at, is not moved; nor is one
// whose connection is closed.
func TestTargetInDoubt(t *testing.T) {
	for _, c := range []struct {
		name, point string
		what        func(r *rig, w *wire) error
		want        string
	}{
		{"its leaf cannot be read", "leaf of 20", injected, "Internal"},
		{"it ends with its leaf read", "leaf of 20", ends, "NoSuchProcess"},
		{"it ends in front of the pin", "group", ends, "NoSuchProcess"},
		{"its group cannot be read", "group", injected, "NoSuchProcess"},
		{"its connection is closed", "group", func(r *rig, w *wire) error {
			w.c.Close()
			r.h.mu.Lock()
			c := r.h.names["web"].owner
			r.h.mu.Unlock()
			<-c.ctx.Done()
			return nil
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			w := r.dial(operatorUID, 10)
			plan := w.plan(api.PlanIn{Name: "web"})
			r.w.spawn(20, operatorUID)
			var moves atomic.Int32
			r.w.setHook(r.nth(c.point, 1, func() error { return c.what(r, w) }, func(at string) {
				if at == "move" {
					moves.Add(1)
				}
			}))
			w.begin("Attach", api.AttachIn{Lease: plan.Lease, PID: 20})
			if a, err := w.receive(); err == nil && (a.Error == "" || shortName(api.DecodeError(a.Error, a.Parameters)) != c.want) || err != nil && c.want != "" {
				t.Errorf("%v, %v, want %s", a, err, c.want)
			}
			w.c.Close()
			r.atRest()
			if moves.Load() != 0 {
				t.Error("it was moved")
			}
		})
	}
}

func injected(*rig, *wire) error { return errors.New("injected") }

func ends(r *rig, _ *wire) error {
	r.w.procs[20].kill(r.w)
	return nil
}

// nth makes a hook that does something at the nth pass of a point, and tells of every pass.
func (r *rig) nth(point string, n int, what func() error, passed func(at string)) func(string) error {
	seen := 0
	return func(at string) error {
		r.mu.Lock()
		passed(at)
		now := false
		if at == point {
			seen++
			now = seen == n
		}
		r.mu.Unlock()
		if now {
			return what()
		}
		return nil
	}
}

// TestEndsInALeaf: that one is dead counts for more than where it was.
func TestEndsInALeaf(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	r.box(w, api.PlanIn{}, 20)
	plan := w.plan(api.PlanIn{})
	r.w.setHook(r.nth("leaf of 20", 1, func() error { return ends(r, nil) }, func(string) {}))
	if err := w.call("Attach", api.AttachIn{Lease: plan.Lease, PID: 20}, nil); shortName(err) != "NoSuchProcess" {
		t.Error(err)
	}
}

// TestMovedInDoubt: what cannot be told of a process behind the move is an error, and it goes back.
func TestMovedInDoubt(t *testing.T) {
	for point, n := range map[string]int{"leaf of 20": 2, "childless": 1} {
		t.Run(point, func(t *testing.T) {
			r := newRig(t)
			w := r.dial(operatorUID, 10)
			plan := w.plan(api.PlanIn{})
			r.w.spawn(20, operatorUID)
			r.w.setHook(r.nth(point, n, func() error { return errors.New("injected") }, func(string) {}))
			if err := w.call("Attach", api.AttachIn{Lease: plan.Lease, PID: 20}, nil); shortName(err) != "Internal" {
				t.Error(err)
			}
			if r.at(20) != "" {
				t.Errorf("the process is in %q", r.at(20))
			}
			w.c.Close()
			r.atRest()
		})
	}
}

// TestLeafIsGone: of a leaf that somebody removed.
func TestLeafIsGone(t *testing.T) {
	for _, gone := range []error{syscall.ENOENT, syscall.ENODEV} {
		r := newRig(t)
		w := r.dial(operatorUID, 10)
		box := r.box(w, api.PlanIn{}, 20)
		r.w.spawn(21, operatorUID)
		r.w.setHook(r.nth("move", 1, func() error { return gone }, func(string) {}))
		in := api.JoinIn{Lease: box.Lease, Secret: box.Secret, Kind: api.JoinKindExec, PID: 21}
		if e, ok := w.call("Join", in, nil).(*api.WrongState); !ok || e.Next == "" {
			t.Errorf("%v: %v", gone, e)
		}
		r.w.setHook(func(at string) error {
			if at == "move" {
				r.w.procs[21].kill(r.w)
				return gone
			}
			return nil
		})
		if err := w.call("Join", in, nil); shortName(err) != "NoSuchProcess" {
			t.Errorf("%v, and the process ended: %v", gone, err)
		}
		r.w.procs[20].kill(r.w)
		r.atRest()
	}
}

// TestNumberOfADead: a process that dies while it is moved is not sent back, for its number may be another's; a stranger
// that has it and came into the leaf with it leaves.
func TestNumberOfADead(t *testing.T) {
	for _, stranger := range []bool{false, true} {
		t.Run(fmt.Sprint("stranger ", stranger), func(t *testing.T) {
			r := newRig(t)
			w := r.dial(operatorUID, 10)
			plan := w.plan(api.PlanIn{})
			target := r.w.spawn(20, operatorUID)
			var restored atomic.Int32
			r.w.setHook(r.nth("moved", 1, func() error {
				target.kill(r.w)
				if stranger {
					r.w.change(r.w.spawn(20, otherUID), func(p *fakeProc) { p.group = plan.Lease })
				}
				return nil
			}, func(at string) {
				if at == "restore" {
					restored.Add(1)
				}
			}))
			if err := w.call("Attach", api.AttachIn{Lease: plan.Lease, PID: 20}, nil); shortName(err) != "NoSuchProcess" {
				t.Error(err)
			}
			if want := map[bool]int32{true: 1}[stranger]; restored.Load() != want {
				t.Errorf("sent back %d times, want %d", restored.Load(), want)
			}
			if stranger && (r.at(20) != "" || r.dead(20)) {
				t.Errorf("the stranger is in %q, dead: %v", r.at(20), r.dead(20))
			}
			w.c.Close()
			r.atRest()
		})
	}
}

// TestExpelInDoubt: a child that came along and ends meanwhile is not sent back by its number.
func TestExpelInDoubt(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	plan := w.plan(api.PlanIn{})
	r.w.change(r.w.spawn(20, operatorUID), func(p *fakeProc) { p.children = true })
	child := r.w.spawn(21, operatorUID)
	var restored atomic.Int32
	r.w.setHook(func(at string) error {
		switch at {
		case "moved":
			r.w.change(child, func(p *fakeProc) { p.group = plan.Lease })
		case "leaf of 21":
			child.kill(r.w)
		case "restore":
			restored.Add(1)
		}
		return nil
	})
	if err := w.call("Attach", api.AttachIn{Lease: plan.Lease, PID: 20}, nil); shortName(err) != "ProcessRefused" {
		t.Error(err)
	}
	if n := restored.Load(); n != 1 {
		t.Errorf("%d processes were sent back", n)
	}
	w.c.Close()
	r.atRest()
}

// TestExpelOfTheDead: a child that came along and has ended is no trouble that anybody reads of.
func TestExpelOfTheDead(t *testing.T) {
	var trouble atomic.Int32
	r := newRig(t, func(c *Config) {
		c.Log = slog.New(heard{c.Log.Handler(), func(text string) {
			if text == "send back" {
				trouble.Add(1)
			}
		}})
	})
	w := r.dial(operatorUID, 10)
	plan := w.plan(api.PlanIn{})
	r.w.change(r.w.spawn(20, operatorUID), func(p *fakeProc) { p.children = true })
	child := r.w.spawn(21, operatorUID)
	r.w.setHook(func(at string) error {
		switch at {
		case "moved":
			r.w.change(child, func(p *fakeProc) { p.group = plan.Lease })
		case "have pids":
			r.w.mu.Lock()
			delete(r.w.procs, 21)
			r.w.mu.Unlock()
		}
		return nil
	})
	if err := w.call("Attach", api.AttachIn{Lease: plan.Lease, PID: 20}, nil); shortName(err) != "ProcessRefused" {
		t.Error(err)
	}
	if trouble.Load() != 0 {
		t.Error("it is told as a failure")
	}
	w.c.Close()
	r.atRest()
}

// TestKnownFromTheStart: a process that was moved out before anybody looked into the leaf is known to be the box's.
func TestKnownFromTheStart(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	box := r.box(w, api.PlanIn{}, 20)
	r.w.spawn(21, operatorUID)
	if err := w.call("Join", api.JoinIn{Lease: box.Lease, Secret: box.Secret, Kind: api.JoinKindExec, PID: 21}, nil); err != nil {
		t.Fatal(err)
	}
	r.w.change(r.w.procs[21], func(p *fakeProc) { p.group = "" })
	r.h.mu.Lock()
	b := r.h.boxes[box.Lease]
	r.h.mu.Unlock()
	r.h.look(b)
	if !r.dead(21) || r.dead(20) {
		t.Errorf("dead: the one outside %v, the one inside %v", r.dead(21), r.dead(20))
	}
	r.w.procs[20].kill(r.w)
	r.atRest()
}
