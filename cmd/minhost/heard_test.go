package main

import (
	"testing"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/api"
)

// TestHeard: a helper's word fills in what only root can see, and nothing else; the digest stays.
func TestHeard(t *testing.T) {
	row := func(id installer.ID, s installer.State) installer.Row {
		return installer.Row{ID: id, Required: true, Observation: installer.Observation{State: s, Private: true, Detail: "before"}}
	}
	plan := func() installer.Plan {
		return installer.Plan{Rows: []installer.Row{row("operator", installer.Unknown), row("tree", installer.Unknown),
			row("belt", installer.Unknown), row("table", installer.Unknown), row("services", installer.Unknown), row("program", installer.Absent)}}
	}
	helper := &fakeHelper{
		status: api.StatusOut{Version: programVersion(), PID: 7},
		checks: api.VerifyOut{Checks: []api.Check{
			{Name: "tree", State: api.CheckStateOK, Detail: "there"}, {Name: "belt", State: api.CheckStateFailed}, {Name: "program", State: api.CheckStateOK},
		}},
	}
	l := newLab(t, helper)
	l.env.EUID, l.env.For = 1000, account{1000, "ana"}
	got := l.env.heard(t.Context(), plan())
	want := []installer.State{installer.Satisfied, installer.Satisfied, installer.Unknown, installer.Unknown, installer.Satisfied, installer.Absent}
	for i, r := range got.Rows {
		if r.State != want[i] {
			t.Errorf("%s: %s, want %s", r.ID, r.State, want[i])
		}
	}
	if got.Digest() != plan().Digest() {
		t.Error("the helper's word changed the digest")
	}
	helper.status.Version = "older"
	if got := l.env.heard(t.Context(), plan()); got.Rows[4].State != installer.Unknown {
		t.Error("a helper of another version vouches for the services")
	}
	l.env.EUID = 0
	if got := l.env.heard(t.Context(), plan()); got.Rows[1].State != installer.Unknown {
		t.Error("root sees for itself")
	}
}
