package lab

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/linux/standalone"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestServicesStep(t *testing.T) {
	c := setup(t)
	var refuse error
	s := &standalone.ServicesStep{
		Config:   c,
		Helper:   func(context.Context) error { _, err := dial("unix", c.Socket); return err },
		Answerer: func(context.Context) error { _, err := dial("udp", "127.0.0.1:15353"); return errors.Join(err, refuse) },
	}
	probe := func(state installer.State, detail string) {
		t.Helper()
		obs, err := s.Probe(t.Context())
		if err != nil || obs.State != state || !strings.Contains(obs.Detail, detail) || (obs.State == installer.Satisfied) != (obs.Loses == "") {
			t.Fatalf("%s %q (loses %q), %v; want %s, %q", obs.State, obs.Detail, obs.Loses, err, state, detail)
		}
	}
	apply := func() {
		t.Helper()
		if err := s.Apply(t.Context(), &installer.Record{}); err != nil {
			t.Fatal(err)
		}
	}
	probe(installer.Absent, "no supervisor")
	apply()
	probe(installer.Satisfied, "answer")
	first := mustRun(t, c)

	install(t, c.Program)
	probe(installer.Drifted, "an older program")
	apply()
	probe(installer.Satisfied, "answer")
	if alive(first) || mustRun(t, c) == first {
		t.Error("the older supervisor lives on")
	}

	refuse = errors.New("SERVFAIL")
	probe(installer.Drifted, "the answerer does not answer: SERVFAIL")
	refuse = nil

	kill(t, mustRun(t, c))
	probe(installer.Absent, "no supervisor")
	apply()
	probe(installer.Satisfied, "answer")

	if err := s.Undo(t.Context(), installer.Record{}); err != nil {
		t.Fatal(err)
	}
	nothingRuns(t, c)
	if _, err := os.Lstat(c.Run); err == nil {
		left, _ := os.ReadDir(c.Run)
		t.Errorf("left in %s: %v", c.Run, left)
	}
	probe(installer.Absent, "no supervisor")
	if err := s.Undo(t.Context(), installer.Record{}); err != nil {
		t.Errorf("second undo: %v", err)
	}
}

// TestServicesUndoKeepsOthers: what others have in the run folder stays.
func TestServicesUndoKeepsOthers(t *testing.T) {
	c := setup(t)
	s := &standalone.ServicesStep{Config: c}
	if err := s.Apply(t.Context(), &installer.Record{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Run+"/zone", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Undo(t.Context(), installer.Record{}); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(c.Run); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}
