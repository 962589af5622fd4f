package reuse

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
)

var plan = api.PlanIn{Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressOpen}}

// TestDiesBeforeTheMove: the child dies behind every check but the last, and a stranger has its number when the
// move begins.
func TestDiesBeforeTheMove(t *testing.T) {
	r := newRig(t)
	out, err := r.c.Plan(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	v := newVictim(t)
	var s *stranger
	r.at("store", func() {
		if !v.die() {
			t.Error("the child cannot be buried before it is pinned")
		}
		s = take(t, v.pid)
	})
	err = r.c.Attach(t.Context(), api.AttachIn{Lease: out.Lease, PID: v.pid}, nil)
	if !errors.As(err, new(*api.NoSuchProcess)) {
		t.Errorf("attach: %v", err)
	}
	s.untouched("behind the attach")
	if err := r.c.Abandon(t.Context(), api.AbandonIn{Lease: out.Lease}); err != nil {
		t.Error(err)
	}
	s.untouched("behind the end of the lease")
}

// TestDiesInTheMove: the child dies in the instant before its number is written. The number is nobody else's
// until the call is over.
func TestDiesInTheMove(t *testing.T) {
	r := newRig(t)
	out, err := r.c.Plan(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	v := newVictim(t)
	r.at("cgroup move", func() {
		if v.die() {
			t.Error("the child could be buried while it is moved")
		}
		if s := take(t, v.pid); s != nil {
			t.Error("a stranger got the number while it is written")
		}
	})
	err = r.c.Attach(t.Context(), api.AttachIn{Lease: out.Lease, PID: v.pid}, nil)
	if !errors.As(err, new(*api.NoSuchProcess)) {
		t.Errorf("attach: %v", err)
	}
	// The harness can do it: behind the call the number is to be had.
	r.eventually("the child is buried", v.die)
	s := take(t, v.pid)
	s.untouched("behind the attach")
	if err := r.c.Abandon(t.Context(), api.AbandonIn{Lease: out.Lease}); err != nil {
		t.Error(err)
	}
	s.untouched("behind the end of the lease")
}

// TestUnpinned is the control: where nothing can be pinned, the same harness puts a stranger into the leaf, from
// where it is sent back, and the call fails.
func TestUnpinned(t *testing.T) {
	r := newRig(t)
	r.unpinned.Store(true)
	out, err := r.c.Plan(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	v := newVictim(t)
	var s *stranger
	r.at("cgroup move", func() {
		v.die()
		s = take(t, v.pid)
	})
	err = r.c.Attach(t.Context(), api.AttachIn{Lease: out.Lease, PID: v.pid}, nil)
	if !errors.As(err, new(*api.NoSuchProcess)) {
		t.Errorf("attach: %v", err)
	}
	if s == nil {
		t.Fatal("no stranger got the number")
	}
	if got := s.group(); got == "" || strings.Contains(got, out.Lease) || got == "/strangers" {
		t.Errorf("the stranger is in %q; it was moved, and must be out of the leaf and alive", got)
	}
}

// TestDiesAsAMember: a process of a live box dies and its number is a stranger's: that one is not followed, not
// reported as escaped, and not killed, neither then nor with the box.
func TestDiesAsAMember(t *testing.T) {
	r := newRig(t)
	out, err := r.c.Plan(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	first, second := newVictim(t), newVictim(t)
	if err := r.c.Attach(t.Context(), api.AttachIn{Lease: out.Lease, PID: first.pid}, nil); err != nil {
		t.Fatal(err)
	}
	join := api.JoinIn{Lease: out.Lease, Secret: out.Secret, Kind: api.JoinKindExec, PID: second.pid}
	if _, _, err := r.c.Join(t.Context(), join, nil); err != nil {
		t.Fatal(err)
	}
	r.eventually("the first child is buried", first.die)
	s := take(t, first.pid)
	time.Sleep(10 * lookAfter)
	s.untouched("behind some looks")
	if _, err := r.c.Teardown(t.Context(), api.TeardownIn{Lease: out.Lease, Secret: out.Secret, Kill: true}); err != nil {
		t.Error(err)
	}
	s.untouched("behind the teardown")
	if !second.die() {
		t.Error("the other member was not killed")
	}
}
