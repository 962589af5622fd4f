package systemd

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer"
)

func TestServicesStep(t *testing.T) {
	units, _, mgr := lab(t)
	apply(t, units)
	old, silent, denied := false, error(nil), false
	s := &ServicesStep{
		Program:   "/usr/local/lib/minhost/minhost",
		Systemctl: units.Systemctl,
		Helper:    func(context.Context) error { return nil },
		Answerer:  func(context.Context) error { return silent },
		Runs: func(pid, program string) (bool, error) {
			if denied {
				return false, os.ErrPermission
			}
			return !old && program == "/usr/local/lib/minhost/minhost", nil
		},
	}
	probe := func(state installer.State, detail string) {
		t.Helper()
		obs, err := s.Probe(t.Context())
		if err != nil || obs.State != state || !strings.Contains(obs.Detail, detail) || (state == installer.Satisfied) != (obs.Loses == "") {
			t.Fatalf("%s %q, %v; want %s %q", obs.State, obs.Detail, err, state, detail)
		}
	}
	run := func() []string {
		t.Helper()
		mgr.calls = nil
		if err := s.Apply(t.Context(), &installer.Record{}); err != nil {
			t.Fatal(err)
		}
		return mgr.calls
	}
	probe(installer.Absent, TreeService+" is inactive")
	if calls := run(); !slices.Equal(calls, []string{"start -- " + strings.Join(services[:], " ")}) {
		t.Errorf("calls %q", calls)
	}
	probe(installer.Satisfied, "")
	old = true
	probe(installer.Drifted, "minhost-resolverd.service and minhost-helper.service: an older program")
	// The tree must never be in a restart.
	if calls := run(); !slices.Equal(calls, []string{"restart -- minhost-resolverd.service minhost-helper.service"}) {
		t.Errorf("calls %q", calls)
	}
	old, silent = false, errors.New("timeout")
	probe(installer.Drifted, "minhost-resolverd.service is active but does not answer: timeout")
	silent, denied = nil, true
	probe(installer.Unknown, "only root")
	if err := s.Undo(t.Context(), installer.Record{}); err != nil {
		t.Fatal(err)
	}
	if len(mgr.active) != 1 || !mgr.active[TreeService] {
		t.Errorf("active after undo: %v", mgr.active)
	}
	if err := s.Undo(t.Context(), installer.Record{}); err != nil {
		t.Errorf("second undo: %v", err)
	}
	if err := units.Undo(t.Context(), installer.Record{}); err != nil || len(mgr.active) != 0 {
		t.Errorf("undo of the units: %v, %v", err, mgr.active)
	}
}

func TestRunsProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		t.Skip("SKIP proc: this system has no /proc/self/exe")
	}
	if ok, err := runsProgram("self", self); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if ok, err := runsProgram("self", "/bin/sh"); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}
