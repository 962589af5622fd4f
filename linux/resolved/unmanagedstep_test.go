package resolved

import (
	"context"
	"os"
	"testing"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

// TestUnmanagedStep: written where the manager is, and the manager told, at undo too; nothing to do
// where it is not.
func TestUnmanagedStep(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(root+"/etc/systemd/network", 0o755); err != nil {
		t.Fatal(err)
	}
	disk, err := host.OpenDisk(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	before := hosttest.Snapshot(root)
	steps := UnmanagedSteps(disk, DBus{}, "min0")
	told := 0
	for i, want := range []installer.State{installer.Absent, installer.Satisfied} {
		s := steps[i]
		s.Reload = func(context.Context) error { told++; return nil }
		if s.Required() || s.Lifetime() != installer.Persistent {
			t.Errorf("%s: required, or not persistent", s.ID())
		}
		if obs, err := s.Probe(t.Context()); err != nil || obs.State != want {
			t.Errorf("%s: %v %q %v, want %v", s.ID(), obs.State, obs.Detail, err, want)
		}
	}
	if os.Geteuid() != 0 {
		return // the file is root's
	}
	s, rec := steps[0], installer.Record{}
	if err := s.Apply(t.Context(), &rec); err != nil || told != 1 {
		t.Fatalf("apply: %v, told %d times", err, told)
	}
	if obs, err := s.Probe(t.Context()); err != nil || obs.State != installer.Satisfied {
		t.Errorf("after apply: %v %q %v", obs.State, obs.Detail, err)
	}
	if err := s.Undo(t.Context(), rec); err != nil || told != 2 {
		t.Errorf("undo: %v, told %d times", err, told)
	}
	if diff := hosttest.Diff(before, hosttest.Snapshot(root)); len(diff) > 0 {
		t.Errorf("left over: %q", diff)
	}
}
