package helper

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
)

// looking makes a helper look for escapes all the time.
func looking(t *testing.T) *rig {
	r := newRig(t, func(c *Config) { c.LookAfter = time.Millisecond })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.h.WatchLeaves(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

// TestEscapesAreKilled: a process of a box that is outside its leaf is killed and told: the attached one,
// one that was born inside, and a child that left before anybody saw it. Others are left alone.
func TestEscapesAreKilled(t *testing.T) {
	r := looking(t)
	w := r.dial(operatorUID, 10)
	out := r.box(w, api.PlanIn{Name: "web"}, 20)
	events := r.watching()
	told := func(words string) {
		t.Helper()
		select {
		case e := <-events.events:
			if e.Kind != api.EventKindEscaped || e.Lease != out.Lease || !strings.Contains(e.Text, words) {
				t.Errorf("event: %+v, want %s", e, words)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("no event: %s", words)
		}
	}
	born, quick, bystander := r.w.spawn(21, operatorUID), r.w.spawn(22, operatorUID), r.w.spawn(23, operatorUID)
	r.w.mu.Lock()
	born.group, born.parent = out.Lease, 20
	r.w.mu.Unlock()
	time.Sleep(20 * time.Millisecond) // some looks
	r.w.mu.Lock()
	quick.parent = 20 // outside from the first moment that it is seen
	r.w.mu.Unlock()
	r.eventually("the child outside is killed", func() bool { return r.dead(22) })
	told("process 22 left its box")
	if r.dead(20) || r.dead(21) {
		t.Fatal("a process inside was killed")
	}
	r.w.mu.Lock()
	born.group = ""
	r.w.mu.Unlock()
	r.eventually("the born one is killed", func() bool { return r.dead(21) })
	if r.dead(20) || r.dead(bystander.pid) {
		t.Error("one that did not leave was killed")
	}
	told("process 21 left its box")
	r.w.mu.Lock()
	r.w.procs[20].group = ""
	r.w.mu.Unlock()
	r.eventually("the attached one is killed", func() bool { return r.dead(20) })
	told("process 20 left its box")
}

// TestWhoIsFollowed: those that are proven to be in the leaf, not too many, and of a box that has ended nobody.
func TestWhoIsFollowed(t *testing.T) {
	r := newRig(t)
	out := r.box(r.dial(operatorUID, 10), api.PlanIn{}, 20)
	r.h.mu.Lock()
	b := r.h.boxes[out.Lease]
	r.h.mu.Unlock()
	followed := func(pid int) bool {
		r.h.follow(b, pid)
		b.members.mu.Lock()
		defer b.members.mu.Unlock()
		return b.members.held[pid] != nil
	}
	in := func(pid int) *fakeProc {
		p := r.w.spawn(pid, operatorUID)
		r.w.change(p, func(p *fakeProc) { p.group = out.Lease })
		return p
	}
	r.w.spawn(21, operatorUID)
	ending := in(22)
	in(23)
	r.w.setHook(func(at string) error {
		if at == "leaf of 22" {
			ending.kill(r.w)
		}
		return nil
	})
	for pid, want := range map[int]bool{20: true, 21: false, 22: false, 23: true, 24: false} {
		if followed(pid) != want {
			t.Errorf("process %d: followed %v", pid, !want)
		}
	}
	b.members.mu.Lock()
	for pid := 1000; len(b.members.held) < maxMembers; pid++ {
		b.members.held[pid] = handle{r.w, r.w.procs[23]}
	}
	b.members.mu.Unlock()
	in(30)
	if followed(30) {
		t.Error("one more than may be")
	}
	b.members.close()
	if followed(23) {
		t.Error("of a box that has ended")
	}
	for _, pid := range []int{20, 23, 30} {
		r.w.procs[pid].kill(r.w)
	}
	r.atRest()
}

// TestChildInDoubt: one that seemed to be a member's child outside is killed if it is still, behind the handle: neither
// another process that has its number now, nor one that is inside, nor is one told of that has ended.
func TestChildInDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		point  string
		change func(p *fakeProc, leaf string)
		killed bool
	}{
		"outside":            {"", nil, true},
		"no child any more":  {"open", func(p *fakeProc, _ string) { p.parent = 1 }, false},
		"inside by now":      {"open", func(p *fakeProc, leaf string) { p.group = leaf }, false},
		"it ended meanwhile": {"leaf of 22", func(p *fakeProc, _ string) { p.dead = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			out := r.box(r.dial(operatorUID, 10), api.PlanIn{}, 20)
			r.h.mu.Lock()
			b := r.h.boxes[out.Lease]
			r.h.mu.Unlock()
			events := r.watching()
			child := r.w.spawn(22, operatorUID)
			r.w.change(child, func(p *fakeProc) { p.parent = 20 })
			r.w.setHook(func(at string) error {
				if at == c.point {
					r.w.change(child, func(p *fakeProc) { c.change(p, out.Lease) })
				}
				return nil
			})
			r.h.look(b)
			r.w.setHook(nil)
			if killed := r.dead(22) && c.point != "leaf of 22"; killed != c.killed || len(events.events) != map[bool]int{true: 1}[c.killed] {
				t.Errorf("killed %v, %d events", killed, len(events.events))
			}
			r.w.procs[20].kill(r.w)
			child.kill(r.w)
			r.atRest()
		})
	}
}

// TestFailedJoinFreesNobody: when a process cannot be joined, it goes back, and nobody else of the box.
func TestFailedJoinFreesNobody(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	out := r.box(w, api.PlanIn{Name: "web"}, 20)
	joiner := r.w.spawn(30, operatorUID)
	r.w.mu.Lock()
	joiner.children = true
	r.w.mu.Unlock()
	if err := w.call("Join", api.JoinIn{Lease: out.Lease, Secret: out.Secret, Kind: api.JoinKindTask, PID: 30}, nil); shortName(err) != "ProcessRefused" {
		t.Fatalf("join: %v", err)
	}
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if got := r.w.procs[20].group; got != out.Lease {
		t.Errorf("the box's own process is in %q now", got)
	}
	if got := r.w.procs[30].group; got != "" {
		t.Errorf("the refused process is in %q", got)
	}
}

func (r *rig) dead(pid int) bool {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	return r.w.procs[pid].dead
}

func (r *rig) watching() *watcher {
	w := &watcher{events: make(chan api.Event, 10)}
	r.h.events.add(w)
	r.t.Cleanup(func() { r.h.events.remove(w) })
	return w
}
