package helper

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

func TestLifeOfABox(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	out := r.box(w, api.PlanIn{Name: "Web"}, 20)
	if out.Name != "web" || out.Address != "127.0.64.1" || out.HostAddress != "127.0.64.254" || out.Enforcement != api.EnforcementPerBox {
		t.Errorf("plan: %+v", out)
	}
	if got := r.w.zoneOf("web"); got != out.Address {
		t.Errorf("zone has web at %s, want %s", got, out.Address)
	}
	var list api.ListOut
	if err := w.call("List", nil, &list); err != nil || len(list.Leases) != 1 || list.Leases[0].Processes != 1 {
		t.Errorf("list: %v %+v", err, list)
	}
	var busy *api.Busy
	if err := w.call("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret}, nil); !errors.As(err, &busy) {
		t.Errorf("teardown of a live box without kill: %v", err)
	}
	for range 2 { // the second repeats the result of the first
		if err := w.call("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret, Kill: true}, nil); err != nil {
			t.Errorf("teardown: %v", err)
		}
	}
	r.advance(rememberGone)
	var none *api.NoSuchLease
	if err := w.call("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret}, nil); !errors.As(err, &none) {
		t.Errorf("teardown 60 s later: %v", err)
	}
	r.atRest()
}

// TestStateTable is DESIGN.md section 8's table, cell by cell.
func TestStateTable(t *testing.T) {
	type row map[string]string // method -> error, "" for a success
	rows := map[lease.State]row{
		lease.Planned:   {"Join": "WrongState", "Listen": "WrongState", "Update": "WrongState", "Adopt": "WrongState", "Teardown": "WrongState", "Attach": "", "Abandon": ""},
		lease.Attaching: {"Attach": "Busy", "Join": "Busy", "Listen": "Busy", "Update": "Busy", "Adopt": "Busy", "Teardown": "Busy", "Abandon": "Busy"},
		lease.Attached:  {"Attach": "WrongState", "Abandon": "WrongState", "Join": "", "Listen": "", "Update": "", "Adopt": "", "Teardown": ""},
		lease.Ending:    {"Attach": "WrongState", "Join": "WrongState", "Listen": "WrongState", "Update": "WrongState", "Adopt": "WrongState", "Abandon": ""},
		lease.Gone:      {"Attach": "NoSuchLease", "Join": "NoSuchLease", "Listen": "NoSuchLease", "Update": "NoSuchLease", "Adopt": "NoSuchLease", "Teardown": "", "Abandon": "NoSuchLease"},
	}
	for state, row := range rows {
		for method, want := range row {
			t.Run(fmt.Sprint(state, " ", method), func(t *testing.T) {
				r := newRig(t)
				w := r.dial(operatorUID, 10)
				out := w.plan(api.PlanIn{Name: "web"})
				r.w.spawn(20, operatorUID)
				if state == lease.Attached || state == lease.Gone {
					if err := w.call("Attach", api.AttachIn{Lease: out.Lease, PID: 20}, nil); err != nil {
						t.Fatal(err)
					}
				}
				if state == lease.Gone {
					if err := w.call("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret, Kill: true}, nil); err != nil {
						t.Fatal(err)
					}
				}
				if state == lease.Attaching || state == lease.Ending {
					r.force(out.Lease, state)
					defer r.force(out.Lease, lease.Planned)
				}
				r.w.spawn(21, operatorUID)
				err := w.call(method, params(method, out), nil)
				if got := shortName(err); got != want {
					t.Errorf("%s of a lease that is %s: %q, want %q (%v)", method, state, got, want, err)
				}
			})
		}
	}
}

func (r *rig) force(id string, s lease.State) {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	if b := r.h.boxes[id]; b != nil {
		b.State = s
	}
}

func params(method string, p api.PlanOut) any {
	switch method {
	case "Attach":
		return api.AttachIn{Lease: p.Lease, PID: 21}
	case "Abandon":
		return api.AbandonIn{Lease: p.Lease}
	case "Join":
		return api.JoinIn{Lease: p.Lease, Secret: p.Secret, Kind: api.JoinKindExec, PID: 21}
	case "Listen":
		return api.ListenIn{Lease: p.Lease, Secret: p.Secret, Protocol: api.ProtocolTCP, Port: 80}
	case "Update":
		return api.UpdateIn{Lease: p.Lease, Secret: p.Secret, Policy: new(api.Policy{Egress: api.EgressOpen})}
	case "Adopt":
		return api.AdoptIn{Lease: p.Lease, Secret: p.Secret}
	case "Teardown":
		return api.TeardownIn{Lease: p.Lease, Secret: p.Secret, Kill: true}
	}
	return nil
}

func shortName(err error) string {
	if err == nil {
		return ""
	}
	name := api.ErrorName(err)
	return name[len(api.Interface)+1:]
}

// TestConnectionCloses: a plan ends with its connection, a box with end_with_connection too, any
// other box goes on until its leaf is empty.
func TestConnectionCloses(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	w.plan(api.PlanIn{Name: "planned"})
	r.box(w, api.PlanIn{Name: "foreground", EndWithConnection: true}, 20)
	r.box(w, api.PlanIn{Name: "background"}, 21)
	w.c.Close()
	r.eventually("only background is left", func() bool {
		r.h.mu.Lock()
		defer r.h.mu.Unlock()
		return len(r.h.boxes) == 1 && r.h.names["background"] != nil
	})
	if !r.w.procs[20].dead || r.w.procs[21].dead {
		t.Error("the foreground box must be killed, the background box must live")
	}
	r.w.procs[21].kill(r.w) // its last process ends
	r.atRest()
}

// TestCloseAtEveryPoint closes the connection while Plan and Attach are at each change they make.
// Whatever the point, at rest nothing is left over.
func TestCloseAtEveryPoint(t *testing.T) {
	for _, point := range []string{"mkdir", "store", "put", "publish", "move"} {
		t.Run(point, func(t *testing.T) {
			r := newRig(t)
			w := r.dial(operatorUID, 10)
			r.w.spawn(20, operatorUID)
			var once sync.Once
			closed := make(chan struct{})
			hook := func(at string) error {
				if at == point {
					once.Do(func() {
						w.c.Close()
						close(closed)
						time.Sleep(5 * time.Millisecond) // let the reader see it; the test holds either way
					})
				}
				return nil
			}
			if point == "mkdir" {
				r.w.setHook(hook)
				w.send(`{"method":"dev.minimal.Host.Plan","parameters":{"name":"web","mode":"host","policy":{"egress":"deny"}}}`)
			} else {
				out := w.plan(api.PlanIn{Name: "web"})
				r.w.setHook(hook)
				w.send(fmt.Sprintf(`{"method":"dev.minimal.Host.Attach","parameters":{"lease":%q,"pid":20}}`, out.Lease))
			}
			<-closed
			r.letGo()
			r.w.procs[20].kill(r.w) // where the attach was committed before the close was seen
			r.atRest()
		})
	}
}

// letGo waits until the helper has let go of every connection.
func (r *rig) letGo() {
	r.eventually("connection let go", func() bool {
		r.h.mu.Lock()
		defer r.h.mu.Unlock()
		for _, b := range r.h.boxes {
			if b.owner != nil {
				return false
			}
		}
		return true
	})
}

func (w *world) setHook(f func(string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hook = f
}

// TestFailAtEveryPoint fails each change of an attach: the caller gets one error, the lease is planned
// as before and can be attached, and the process is where it was.
func TestFailAtEveryPoint(t *testing.T) {
	for _, point := range []string{"store", "put", "publish", "move"} {
		t.Run(point, func(t *testing.T) {
			r := newRig(t)
			w := r.dial(operatorUID, 10)
			out := w.plan(api.PlanIn{Name: "web"})
			r.w.spawn(20, operatorUID)
			failed := false
			r.w.setHook(func(at string) error {
				if at == point && !failed {
					failed = true
					return errors.New("injected")
				}
				return nil
			})
			in := api.AttachIn{Lease: out.Lease, PID: 20}
			if err := w.call("Attach", in, nil); shortName(err) != "Internal" {
				t.Fatalf("attach: %v", err)
			}
			r.w.mu.Lock()
			if len(r.w.table)+len(r.w.zone)+len(r.w.store) != 0 || r.w.procs[20].group != "" {
				t.Errorf("a failed attach left table %v, zone %v, store %v, process in %q", r.w.table, r.w.zone, r.w.store, r.w.procs[20].group)
			}
			r.w.mu.Unlock()
			if err := w.call("Attach", in, nil); err != nil {
				t.Errorf("second attach: %v", err)
			}
			w.c.Close()
			r.w.procs[20].kill(r.w)
			r.atRest()
		})
	}
}

func (p *fakeProc) kill(w *world) { w.change(p, func(p *fakeProc) { p.dead = true }) }

func (w *world) change(p *fakeProc, f func(*fakeProc)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(p)
}

// TestEndingGoesOn: what fails on the way out is tried again until nothing is left.
func TestEndingGoesOn(t *testing.T) {
	for _, point := range []string{"delete", "publish", "kill", "rmdir", "unstore"} {
		t.Run(point, func(t *testing.T) {
			r := newRig(t)
			w := r.dial(operatorUID, 10)
			out := r.box(w, api.PlanIn{Name: "web"}, 20)
			failed := false
			r.w.setHook(func(at string) error {
				if at == point && !failed {
					failed = true
					return errors.New("injected")
				}
				return nil
			})
			if err := w.call("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret, Kill: true}, nil); shortName(err) != "Internal" {
				t.Errorf("teardown: %v", err)
			}
			if err := w.call("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret, Kill: true}, nil); err != nil {
				t.Errorf("second teardown waits for the end: %v", err)
			}
			r.atRest()
		})
	}
}

// TestMovedProcessIsLookedAtAgain: alive, in the leaf, and no child left outside.
func TestMovedProcessIsLookedAtAgain(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(p *fakeProc)
		want  string
	}{
		"dies":   {func(p *fakeProc) { p.dead = true }, "NoSuchProcess"},
		"forks":  {func(p *fakeProc) { p.children = true }, "ProcessRefused"},
		"leaves": {func(p *fakeProc) { p.group = "" }, "ProcessRefused"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(cfg *Config) {
				w := cfg.Tree.(*world)
				cfg.Tree = spoiler{w, func() { c.spoil(w.procs[20]) }}
			})
			w := r.dial(operatorUID, 10)
			out := w.plan(api.PlanIn{Name: "web"})
			p := r.w.spawn(20, operatorUID)
			if err := w.call("Attach", api.AttachIn{Lease: out.Lease, PID: 20}, nil); shortName(err) != c.want {
				t.Errorf("attach: %v, want %s", err, c.want)
			}
			r.w.mu.Lock()
			if p.group != "" && !p.dead {
				t.Errorf("the process stayed in %q", p.group)
			}
			r.w.mu.Unlock()
			w.c.Close()
			r.atRest()
		})
	}
}

// spoiler changes the process right behind the move: the second time that its leaf is read.
type spoiler struct {
	*world
	spoil func()
}

func (s spoiler) LeafOf(pid int) (string, error) {
	s.mu.Lock()
	if p := s.procs[pid]; p != nil && p.group != "" {
		s.spoil()
	}
	s.mu.Unlock()
	return s.world.LeafOf(pid)
}

// TestReplay: a helper that takes up after a kill keeps what lives and ends the rest.
func TestReplay(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	live := r.box(w, api.PlanIn{Name: "live"}, 20)
	r.box(w, api.PlanIn{Name: "empty"}, 21)
	r.box(w, api.PlanIn{Name: "bound", EndWithConnection: true}, 22)
	adopted := r.box(w, api.PlanIn{Name: "adopted", EndWithConnection: true}, 23)
	w.plan(api.PlanIn{Name: "planned"})
	r.stop() // connections close with the helper: boxes go on all the same
	r.w.procs[21].kill(r.w)
	clear(r.w.table) // and somebody flushed the table
	r.start()
	w = r.dial(operatorUID, 11)
	if err := w.call("Adopt", api.AdoptIn{Lease: adopted.Lease, Secret: adopted.Secret}, nil); err != nil {
		t.Fatal(err)
	}
	r.eventually("live and adopted are left", func() bool {
		r.h.mu.Lock()
		defer r.h.mu.Unlock()
		return len(r.h.boxes) == 2 && r.h.names["live"] != nil && r.h.names["adopted"] != nil
	})
	r.w.mu.Lock()
	if len(r.w.table) != 2 || len(r.w.leaves) != 2 || r.w.zone["live"].String() != live.Address {
		t.Errorf("after replay: %d verdicts, %d leaves, zone %v", len(r.w.table), len(r.w.leaves), r.w.zone)
	}
	r.w.mu.Unlock()
	if err := w.call("Teardown", api.TeardownIn{Lease: live.Lease, Secret: live.Secret, Kill: true}, nil); err != nil {
		t.Errorf("the secret outlives the helper: %v", err)
	}
	w.c.Close()
	r.atRest()
}

// TestTableMended: the helper refills a table that somebody changed.
func TestTableMended(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	out := r.box(w, api.PlanIn{Name: "web"}, 20)
	root := r.dial(0, 12)
	r.w.mu.Lock()
	clear(r.w.table)
	r.w.mu.Unlock()
	var rep api.RepairOut
	if err := root.call("Repair", nil, &rep); err != nil || len(rep.Differences) == 0 {
		t.Errorf("repair: %v %v", err, rep)
	}
	if err := root.call("Repair", nil, &rep); err != nil || len(rep.Differences) != 0 {
		t.Errorf("second repair: %v %v", err, rep)
	}
	if err := w.call("Teardown", api.TeardownIn{Lease: out.Lease, Secret: out.Secret, Kill: true}, nil); err != nil {
		t.Error(err)
	}
	r.atRest()
}
