package systemd

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer"
)

func lab(t *testing.T) (*UnitsStep, *memFS, *manager) {
	t.Helper()
	m := newMemFS()
	mgr := newManager(m)
	return &UnitsStep{
		Units:     render(t),
		FS:        m,
		Manager:   Manager{Kind: Systemd},
		Systemctl: Systemctl{Run: mgr, Path: "/usr/bin/systemctl"},
	}, m, mgr
}

func probe(t *testing.T, s *UnitsStep, want installer.State) installer.Observation {
	t.Helper()
	obs, err := s.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if obs.State != want {
		t.Fatalf("state %s (%s), want %s", obs.State, obs.Detail, want)
	}
	if (obs.State == installer.Satisfied) != (obs.Loses == "") {
		t.Errorf("state %s, loses %q", obs.State, obs.Loses)
	}
	return obs
}

func apply(t *testing.T, s *UnitsStep) installer.Record {
	t.Helper()
	var rec installer.Record
	if err := s.Apply(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	return rec
}

func TestUnitsStepCycle(t *testing.T) {
	s, m, mgr := lab(t)
	if obs := probe(t, s, installer.Absent); len(obs.Files) != len(s.Units) {
		t.Errorf("the plan shows %d files", len(obs.Files))
	}
	rec := apply(t, s)
	probe(t, s, installer.Satisfied)
	if mgr.enabled[VerifyService] {
		t.Errorf("%s is an admin's to enable", VerifyService)
	}
	mgr.enabled[VerifyService] = true // which undo takes back
	changes := m.changes
	apply(t, s)
	if m.changes != changes {
		t.Errorf("a second apply wrote %d files", m.changes-changes)
	}
	mgr.active[TreeService], mgr.active[HelperService] = true, true
	cleaned := 0
	s.Clean = func(context.Context) error {
		if cleaned++; len(mgr.active) != 0 {
			t.Errorf("cleaned while %v ran", mgr.active)
		}
		return nil
	}
	if err := s.Undo(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	if len(m.files) != 0 || len(mgr.enabled) != 0 || len(mgr.active) != 0 {
		t.Errorf("left over: %d files, enabled %v, active %v", len(m.files), mgr.enabled, mgr.active)
	}
	if cleaned != 1 {
		t.Errorf("cleaned %d times", cleaned)
	}
	if err := s.Undo(t.Context(), rec); err != nil {
		t.Errorf("undo of nothing: %v", err)
	}
}

func TestUnitsStepCutAtEachFile(t *testing.T) {
	for n := range len(order) {
		s, m, _ := lab(t)
		all := s.Units
		s.Units = all[:n]
		if n > 0 {
			apply(t, s)
		}
		s.Units = all
		probe(t, s, installer.Absent)
		rec := apply(t, s)
		probe(t, s, installer.Satisfied)
		if err := s.Undo(t.Context(), rec); err != nil || len(m.files) != 0 {
			t.Errorf("cut after %d: undo: %v, %d files left", n, err, len(m.files))
		}
	}
}

func TestUnitsStepProbes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*UnitsStep, *memFS, *manager)
		want   installer.State
		detail string
	}{
		"edited":          {func(s *UnitsStep, m *memFS, _ *manager) { m.files[s.Units[2].Path] += "# mine\n" }, installer.Drifted, "was edited"},
		"somebody else's": {func(s *UnitsStep, m *memFS, _ *manager) { m.files[s.Units[2].Path] = "[Unit]\n" }, installer.Foreign, "not written by minhost"},
		"mode":            {func(s *UnitsStep, m *memFS, _ *manager) { a := unitAttr; a.Mode = 0o666; m.attr[s.Units[0].Path] = a }, installer.Drifted, "owner or mode"},
		"disabled":        {func(_ *UnitsStep, _ *memFS, g *manager) { delete(g.enabled, HelperService) }, installer.Drifted, "minhost-helper.service is disabled"},
		"not read":        {func(_ *UnitsStep, _ *memFS, g *manager) { g.loaded[TreeService] = "old" }, installer.Drifted, "has not read"},
		"one removed":     {func(s *UnitsStep, m *memFS, _ *manager) { delete(m.files, s.Units[4].Path) }, installer.Absent, "does not exist"},
		"no systemd":      {func(s *UnitsStep, _ *memFS, _ *manager) { s.Manager = Manager{Kind: Standalone, Reason: "PID 1 is sh"} }, installer.Blocked, "PID 1 is sh"},
		"generated /etc":  {func(s *UnitsStep, _ *memFS, _ *manager) { s.Manager.Generated = "NixOS" }, installer.Blocked, "NixOS"},
		"foreign and gone": {func(s *UnitsStep, m *memFS, _ *manager) {
			m.files[s.Units[5].Path] = "x"
			delete(m.files, s.Units[0].Path)
		}, installer.Foreign, "not written by minhost"},
	} {
		s, m, mgr := lab(t)
		apply(t, s)
		c.change(s, m, mgr)
		if obs := probe(t, s, c.want); !strings.Contains(obs.Detail, c.detail) {
			t.Errorf("%s: detail %q", name, obs.Detail)
		}
	}
}

func TestUnitsStepKeepsWhatIsNotOurs(t *testing.T) {
	s, m, mgr := lab(t)
	rec := apply(t, s)
	edited, foreign := s.Units[1], s.Units[3]
	m.files[edited.Path] += "# mine\n"
	m.files[foreign.Path] = "[Unit]\n"
	err := s.Undo(t.Context(), rec)
	if err == nil || !strings.Contains(err.Error(), edited.Path) || !strings.Contains(err.Error(), foreign.Path) {
		t.Errorf("undo names what it left: %v", err)
	}
	if len(m.files) != 2 {
		t.Errorf("%d files left, want the two", len(m.files))
	}
	if !mgr.enabled[edited.Name] || mgr.enabled[HelperService] {
		t.Errorf("enabled %v", mgr.enabled)
	}
	apply := func() error { var r installer.Record; return s.Apply(t.Context(), &r) }
	if err := apply(); err == nil || m.files[foreign.Path] != "[Unit]\n" {
		t.Errorf("apply over a foreign file: %v", err)
	}
}

// TestUnitsStepOlderVersion: a unit that another version wrote is replaced, and undo by this
// version removes what that one left, known from the record or not.
func TestUnitsStepOlderVersion(t *testing.T) {
	s, m, _ := lab(t)
	old := sum([]byte(Marker + "\n[Unit]\nDescription=old\n"))
	rec := apply(t, s)
	m.files[s.Units[0].Path] = string(old)
	probe(t, s, installer.Drifted)
	all := s.Units
	s.Units = slices.Clone(all[1:])
	if err := s.Undo(t.Context(), rec); err != nil || len(m.files) != 0 {
		t.Errorf("undo: %v, %d files left", err, len(m.files))
	}
}
