package installer_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer"
)

// TestJournalV1 holds that a journal of the first release is read, undone and written as it was.
// The fixture never changes; a new format gets a fixture of its own.
func TestJournalV1(t *testing.T) {
	fixture, err := os.ReadFile("testdata/journal.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{data: slices.Clone(fixture)}
	var undone []string
	step := func(id installer.ID, lifetime installer.Lifetime) *fake {
		return &fake{id: id, lifetime: lifetime, undo: func(r installer.Record) error {
			var kept struct{ Folders []string }
			ok, err := r.Kept(&kept)
			undone = append(undone, string(id)+" "+r.Lifetime+" "+r.BootID)
			if id == "program" && (!ok || err != nil || len(kept.Folders) != 1 || !r.Done || len(r.Made) == 0) {
				t.Errorf("program: %v %v %+v %+v", ok, err, kept, r)
			}
			if id == "tree" && (ok || r.Done) {
				t.Errorf("tree: %+v", r)
			}
			return errors.New("stays")
		}}
	}
	const boot = "ff288dff-5a35-44ba-8ab4-4c6e68294141"
	e := engineAt(boot, m, step("program", installer.Persistent), step("tree", installer.Boot))
	if err := e.Undo(ctx); err == nil {
		t.Fatal("no error")
	}
	if want := []string{"tree boot " + boot, "program persistent " + boot}; !slices.Equal(undone, want) {
		t.Errorf("%v, want %v", undone, want)
	}
	// Mark the open record done: everything else must come out byte for byte.
	satisfied := func() (installer.Observation, error) { return installer.Observation{State: installer.Satisfied}, nil }
	program, tree := step("program", installer.Persistent), step("tree", installer.Boot)
	program.probe, tree.probe = satisfied, satisfied
	if _, err := engineAt(boot, m, program, tree).Apply(ctx, installer.Options{}); err != nil {
		t.Fatal(err)
	}
	want := bytes.Replace(fixture, []byte(`"done": false`), []byte(`"done": true`), 1)
	if !bytes.Equal(m.data, want) {
		t.Errorf("written as\n%s\nwant\n%s", m.data, want)
	}
}

func TestCorruptJournal(t *testing.T) {
	for name, text := range map[string]string{
		"empty":           "",
		"zeros":           strings.Repeat("\x00", 64),
		"half":            `{"schema": "minhost/v1/journal", "records": [{"step": "a", "lif`,
		"not an object":   `[]`,
		"no schema":       `{"records": []}`,
		"newer":           `{"schema": "minhost/v2/journal"}`,
		"unknown field":   `{"schema": "minhost/v1/journal", "records": [{"step": "a", "lifetime": "boot", "weight": 1}]}`,
		"twice":           `{"schema": "minhost/v1/journal", "records": [{"step": "a", "lifetime": "boot"}, {"step": "a", "lifetime": "boot"}]}`,
		"no step":         `{"schema": "minhost/v1/journal", "records": [{"lifetime": "boot"}]}`,
		"wrong lifetime":  `{"schema": "minhost/v1/journal", "records": [{"step": "a", "lifetime": "ever"}]}`,
		"something after": `{"schema": "minhost/v1/journal", "records": []} {}`,
	} {
		k := newKernel()
		m := &memory{data: []byte(text)}
		e := engine(m, k.step("a", 0))
		_, applyErr := e.Apply(ctx, installer.Options{})
		for what, err := range map[string]error{"apply": applyErr, "undo": e.Undo(ctx)} {
			var corrupt *installer.CorruptError
			if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "/journal") {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if string(m.data) != text || len(k.calls) > 0 {
			t.Errorf("%s: journal %q, calls %v", name, m.data, k.calls)
		}
	}
}
