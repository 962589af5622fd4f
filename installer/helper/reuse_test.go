package helper

import (
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

// reuse is a number that becomes a stranger's.
type reuse struct {
	r        *rig
	point    string
	pid      int
	reached  bool
	stranger *fakeProc
}

// dieAt lets a process die at a point.
func (r *rig) dieAt(point string, pid int) *reuse {
	u := &reuse{r: r, point: point, pid: pid}
	r.w.setHook(func(at string) error {
		if at == point {
			u.die()
		}
		return nil
	})
	return u
}

// die ends the process. Its number is a stranger's from then on, unless it is pinned.
func (u *reuse) die() {
	w := u.r.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if u.reached {
		return
	}
	u.reached = true
	w.procs[u.pid].dead = true
	if w.procs[u.pid].pinned == 0 {
		u.stranger = &fakeProc{pid: u.pid, uid: strangerUID, group: "elsewhere"}
		w.procs[u.pid] = u.stranger
	}
}

// untouched wants the point to have been reached, and the stranger to be alive where it was.
func (u *reuse) untouched() {
	u.r.t.Helper()
	u.r.w.mu.Lock()
	defer u.r.w.mu.Unlock()
	if !u.reached {
		u.r.t.Fatalf("%s was not reached", u.point)
	}
	if s := u.stranger; s != nil && (s.dead || s.group != "elsewhere") {
		u.r.t.Errorf("the stranger is in %q, dead %v", s.group, s.dead)
	}
}

// TestNumberReusedInAttach: the child of a caller dies at any moment of an Attach, and its number is a
// stranger's from then on. That one is not moved, kept or killed, and nothing is left.
func TestNumberReusedInAttach(t *testing.T) {
	for _, c := range []struct {
		name   string
		plan   api.PlanIn
		points []string
	}{
		{"host ", api.PlanIn{Name: "web"}, []string{"store", "put", "publish", "group", "move", "moved"}},
		{"own_ip ", ownIP, []string{"store", "put", "prepare", "group", "move", "moved"}},
	} {
		for _, point := range c.points {
			t.Run(c.name+point, func(t *testing.T) {
				r := newRig(t)
				w := r.dial(operatorUID, 10)
				plan := w.plan(c.plan)
				r.w.spawnIn(20, 77)
				u := r.dieAt(point, 20)
				if err := w.call("Attach", api.AttachIn{Lease: plan.Lease, PID: 20}, nil); shortName(err) != "NoSuchProcess" {
					t.Errorf("attach: %v", err)
				}
				u.untouched()
				if err := w.call("Abandon", api.AbandonIn{Lease: plan.Lease}, nil); err != nil {
					t.Error(err)
				}
				u.untouched()
				r.atRest()
			})
		}
	}
}

// TestNumberReusedInJoin is the same for a process that joins.
func TestNumberReusedInJoin(t *testing.T) {
	for _, point := range []string{"group", "move", "moved"} {
		t.Run(point, func(t *testing.T) {
			r := newRig(t)
			w := r.dial(operatorUID, 10)
			box := r.box(w, api.PlanIn{Name: "web"}, 20)
			r.w.spawn(21, operatorUID)
			u := r.dieAt(point, 21)
			err := w.call("Join", api.JoinIn{Lease: box.Lease, Secret: box.Secret, Kind: api.JoinKindTask, PID: 21}, nil)
			if shortName(err) != "NoSuchProcess" {
				t.Errorf("join: %v", err)
			}
			u.untouched()
			if err := w.call("Teardown", api.TeardownIn{Lease: box.Lease, Secret: box.Secret, Kill: true}, nil); err != nil {
				t.Error(err)
			}
			u.untouched()
		})
	}
}

// TestNumberReusedOnTheWayBack: a target that forked while it was moved goes back with its child. The child
// dies first, and its number is a stranger's.
func TestNumberReusedOnTheWayBack(t *testing.T) {
	for _, point := range []string{"open", "restore"} {
		t.Run(point, func(t *testing.T) {
			r := newRig(t)
			w := r.dial(operatorUID, 10)
			plan := w.plan(api.PlanIn{})
			target := r.w.spawn(20, operatorUID)
			seen := map[string]int{}
			u := &reuse{r: r, point: point, pid: 21}
			r.w.setHook(func(at string) error {
				seen[at]++
				switch {
				case at == "moved":
					r.w.change(target, func(p *fakeProc) { p.children = true })
					r.w.change(r.w.spawn(21, operatorUID), func(p *fakeProc) { p.group, p.parent = plan.Lease, 20 })
				case at == point && seen[at] == 2: // the first is that of the target
					u.die()
				}
				return nil
			})
			err := w.call("Attach", api.AttachIn{Lease: plan.Lease, PID: 20}, nil)
			if shortName(err) != "ProcessRefused" {
				t.Errorf("attach: %v", err)
			}
			u.untouched()
			r.w.change(target, func(p *fakeProc) {
				if p.group != "" {
					t.Errorf("the target is in %q", p.group)
				}
			})
		})
	}
}
