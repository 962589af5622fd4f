package installer_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/installer"
)

var ctx = context.Background()

func TestApplyIsIdempotent(t *testing.T) {
	k, m := newKernel(), &memory{}
	e := func() *installer.Engine {
		return engine(m, k.step("a", installer.Persistent), k.step("b", installer.Boot))
	}
	report, err := e().Apply(ctx, installer.Options{})
	if err != nil || report.Changed() != 2 {
		t.Fatalf("changed %d, %v", report.Changed(), err)
	}
	saves := m.saves
	report, err = e().Apply(ctx, installer.Options{})
	if err != nil || report.Changed() != 0 || m.saves != saves {
		t.Errorf("second apply: changed %d, %d saves, %v", report.Changed(), m.saves-saves, err)
	}
	if len(report.Results) != 2 || report.Results[0].Deed != installer.Skipped {
		t.Errorf("second report: %+v", report)
	}
}

// TestIntentIsJournalledFirst looks into the journal while a step is being applied.
func TestIntentIsJournalledFirst(t *testing.T) {
	m := &memory{}
	read := func() installer.Record {
		var f struct{ Records []installer.Record }
		if err := json.Unmarshal(m.data, &f); err != nil || len(f.Records) != 1 {
			t.Fatalf("journal %s: %v", m.data, err)
		}
		return f.Records[0]
	}
	s := &fake{id: "a", apply: func(r *installer.Record) error {
		if rec := read(); rec.Done || rec.Step != "a" || rec.BootID != "boot-1" || rec.Lifetime != "persistent" {
			t.Errorf("before the change: %+v", rec)
		}
		if err := r.Keep("first"); err != nil {
			t.Error(err)
		}
		if err := r.Keep("second"); err != nil {
			t.Error(err)
		}
		if rec := read(); string(rec.Prior) != `"first"` {
			t.Errorf("kept %s", rec.Prior)
		}
		if err := errors.Join(r.Note("v1"), r.Note("v2")); err != nil {
			t.Error(err)
		}
		if rec := read(); string(rec.Made) != `"v2"` {
			t.Errorf("noted %s", rec.Made)
		}
		return nil
	}}
	if _, err := engine(m, s).Apply(ctx, installer.Options{}); err != nil {
		t.Fatal(err)
	}
	if !read().Done {
		t.Error("not marked done")
	}
}

// TestNoteOfTheSameThingWritesNothing: the journal is indented, the note is not.
func TestNoteOfTheSameThingWritesNothing(t *testing.T) {
	m := &memory{}
	note := map[string][]int{"a": {1, 2}}
	saves := 0
	s := &fake{id: "a", apply: func(r *installer.Record) error {
		start := m.saves
		defer func() { saves = m.saves - start }()
		return r.Note(note)
	}}
	for _, want := range []int{1, 0} {
		if _, err := engine(m, s).Apply(ctx, installer.Options{}); err != nil {
			t.Fatal(err)
		}
		if saves != want {
			t.Errorf("%d saves, want %d", saves, want)
		}
	}
}

func TestApplyProbesAgainRightBefore(t *testing.T) {
	for _, tc := range []struct {
		becomes installer.State
		want    string
		stops   bool
	}{
		{installer.Satisfied, "apply first", false},
		{installer.Foreign, "apply first", true},
		{installer.Drifted, "apply first,apply second", false},
	} {
		k := newKernel()
		first, second := k.step("first", installer.Persistent), k.step("second", installer.Persistent)
		second.probe = func() (installer.Observation, error) {
			if k.on["first"] {
				return installer.Observation{State: tc.becomes}, nil
			}
			return installer.Observation{State: installer.Absent}, nil
		}
		_, err := engine(&memory{}, first, second).Apply(ctx, installer.Options{})
		if got := strings.Join(k.calls, ","); got != tc.want {
			t.Errorf("%v: calls %q, want %q", tc.becomes, got, tc.want)
		}
		if (err != nil) != tc.stops {
			t.Errorf("%v: %v", tc.becomes, err)
		}
	}
}

// TestRefusesBeforeTheFirstChange: the refused step is the last one, and two are named at once.
func TestRefusesBeforeTheFirstChange(t *testing.T) {
	for _, state := range []installer.State{installer.Foreign, installer.Blocked, installer.Unknown} {
		k, m := newKernel(), &memory{}
		bad := func(id installer.ID) *fake {
			return &fake{id: id, probe: func() (installer.Observation, error) {
				return installer.Observation{State: state, Detail: "the fact", Next: "show " + string(id)}, nil
			}, apply: func(*installer.Record) error { t.Error("applied"); return nil }}
		}
		_, err := engine(m, k.step("a", installer.Persistent), bad("x"), bad("y")).Apply(ctx, installer.Options{})
		if err == nil || len(k.calls) > 0 || m.saves > 0 {
			t.Errorf("%v: %v, calls %v, %d saves", state, err, k.calls, m.saves)
			continue
		}
		for _, word := range []string{"step x", "step y", state.String(), "the fact", "show x"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%v: %q lacks %q", state, err, word)
			}
		}
		var refused *installer.Refused
		if !errors.As(err, &refused) || refused.Row.ID != "x" {
			t.Errorf("%v: not a Refused of x: %v", state, err)
		}
	}
}

func TestOptionalStepsAreLeft(t *testing.T) {
	k := newKernel()
	names := &fake{id: "names", optional: true, probe: func() (installer.Observation, error) {
		return installer.Observation{State: installer.Blocked, Loses: "names"}, nil
	}, apply: func(*installer.Record) error { t.Error("applied"); return nil }}
	e := engine(&memory{}, names, k.step("a", installer.Persistent))
	report, err := e.Apply(ctx, installer.Options{})
	if err != nil || report.Results[0].Deed != installer.Left || report.Changed() != 1 {
		t.Fatalf("%+v %v", report, err)
	}
	p := e.Plan(ctx)
	if !p.Finished() || p.ExitStatus() != 0 || len(p.Degraded()) != 1 || p.Degraded()[0].ID != "names" {
		t.Errorf("finished %v, degraded %v", p.Finished(), p.Degraded())
	}
}

func TestApplyStopsAtTheFirstError(t *testing.T) {
	broken := errors.New("no such device")
	for name, f := range map[string]func(*installer.Record) error{
		"error": func(*installer.Record) error { return broken },
		"panic": func(*installer.Record) error { panic("index out of range") },
	} {
		k, m := newKernel(), &memory{}
		bad := k.step("b", installer.Persistent)
		good := bad.apply
		bad.apply = f
		steps := []*fake{k.step("a", installer.Persistent), bad, k.step("c", installer.Persistent)}
		report, err := engine(m, steps...).Apply(ctx, installer.Options{})
		var stopped *installer.Stopped
		if !errors.As(err, &stopped) || stopped.Step != "b" || stopped.Changed != 1 || len(report.Results) != 1 {
			t.Fatalf("%s: %v, report %+v", name, err, report)
		}
		for _, word := range []string{"step b: apply: ", "again", "--undo", "2 of 3"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %q lacks %q", name, err, word)
			}
		}
		if name == "error" && !errors.Is(err, broken) {
			t.Errorf("the cause is lost: %v", err)
		}
		if !slices.Equal(k.calls, []string{"apply a"}) {
			t.Errorf("%s: calls %v", name, k.calls)
		}
		bad.apply = good
		if _, err := engine(m, steps...).Apply(ctx, installer.Options{}); err != nil || !k.on["c"] {
			t.Errorf("%s: going on: %v", name, err)
		}
	}
}

func TestProbeThatFailsOrPanicsIsUnknown(t *testing.T) {
	for name, probe := range map[string]func() (installer.Observation, error){
		"error": func() (installer.Observation, error) {
			return installer.Observation{State: installer.Satisfied}, errors.New("boom")
		},
		"panic": func() (installer.Observation, error) { panic("boom") },
	} {
		e := engine(&memory{}, &fake{id: "a", probe: probe})
		row := e.Plan(ctx).Rows[0]
		if row.State != installer.Unknown || !strings.Contains(row.Detail, "boom") {
			t.Errorf("%s: %+v", name, row)
		}
		if _, err := e.Apply(ctx, installer.Options{}); err == nil || !strings.Contains(err.Error(), "boom") {
			t.Errorf("%s: apply: %v", name, err)
		}
	}
}

// TestJournalThatCannotBeWritten: without a record of the intent there is no change.
func TestJournalThatCannotBeWritten(t *testing.T) {
	k, m := newKernel(), &memory{fail: syscall.ENOSPC}
	_, err := engine(m, k.step("a", installer.Persistent)).Apply(ctx, installer.Options{})
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "/journal") || len(k.calls) > 0 {
		t.Errorf("%v, calls %v", err, k.calls)
	}
	m.fail = nil
	keepFails := &fake{id: "a", apply: func(r *installer.Record) error {
		m.fail = syscall.ENOSPC
		if err := r.Keep(1); err != nil {
			return err
		}
		t.Error("Keep said nothing")
		return nil
	}}
	if _, err := engine(m, keepFails).Apply(ctx, installer.Options{}); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
}

func TestCancelledApplyChangesNothingMore(t *testing.T) {
	ctx, cancel := context.WithCancel(ctx)
	k := newKernel()
	a := k.step("a", installer.Persistent)
	apply := a.apply
	a.apply = func(r *installer.Record) error { cancel(); return apply(r) }
	_, err := engine(&memory{}, a, k.step("b", installer.Persistent)).Apply(ctx, installer.Options{})
	if !errors.Is(err, context.Canceled) || k.on["b"] {
		t.Errorf("%v, %v", err, k.calls)
	}
}
