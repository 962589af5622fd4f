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
