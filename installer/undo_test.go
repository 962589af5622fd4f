package installer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer"
)

func apply(t *testing.T, e *installer.Engine, o installer.Options) {
	t.Helper()
	if _, err := e.Apply(ctx, o); err != nil {
		t.Fatal(err)
	}
}

// TestUndoIsTheReverseOfTheSteps, also when they were applied in another order.
func TestUndoIsTheReverseOfTheSteps(t *testing.T) {
	k, m := newKernel(), &memory{}
	e := engine(m, k.step("a", 0), k.step("b", 0), k.step("c", 0))
	apply(t, e, installer.Options{Only: []installer.ID{"b"}})
	apply(t, e, installer.Options{Only: []installer.ID{"c"}})
	apply(t, e, installer.Options{})
	k.calls = nil
	if err := e.Undo(ctx); err != nil {
		t.Fatal(err)
	}
	if want := []string{"undo c", "undo b", "undo a"}; !slices.Equal(k.calls, want) {
		t.Errorf("%v, want %v", k.calls, want)
	}
	if m.data != nil {
		t.Errorf("journal left: %s", m.data)
	}
	if err := e.Undo(ctx); err != nil || len(k.calls) != 3 {
		t.Errorf("undo of nothing: %v, %v", err, k.calls)
	}
}

func TestUndoGoesOnPastFailures(t *testing.T) {
	k, m := newKernel(), &memory{}
	b, c := k.step("b", 0), k.step("c", 0)
	undo := b.undo
	stuck := errors.New("stuck")
	b.undo = func(installer.Record) error { return stuck }
	c.undo = func(installer.Record) error { panic("oops") }
	e := engine(m, k.step("a", 0), b, c, k.step("d", 0))
	apply(t, e, installer.Options{})
	err := e.Undo(ctx)
	if !errors.Is(err, stuck) || !strings.Contains(err.Error(), "step c: undo: ") || !strings.Contains(err.Error(), "oops") {
		t.Errorf("not both failures: %v", err)
	}
	if !strings.Contains(err.Error(), "--undo") {
		t.Errorf("no next command: %v", err)
	}
	if k.on["a"] || k.on["d"] || !k.on["b"] {
		t.Errorf("on: %v", k.on)
	}
	b.undo, c.undo, k.calls = undo, k.step("c", 0).undo, nil
	if err := e.Undo(ctx); err != nil || m.data != nil {
		t.Fatalf("second undo: %v, journal %s", err, m.data)
	}
	if want := []string{"undo c", "undo b"}; !slices.Equal(k.calls, want) {
		t.Errorf("second undo: %v, want %v", k.calls, want)
	}
}

func TestUndoGetsWhatWasKept(t *testing.T) {
	k, m := newKernel(), &memory{}
	a := k.step("a", 0)
	a.undo = func(r installer.Record) error {
		var kept string
		if ok, err := r.Kept(&kept); !ok || err != nil || kept != "kept by a" {
			t.Errorf("%q %v %v", kept, ok, err)
		}
		return nil
	}
	apply(t, engine(m, a), installer.Options{})
	if err := engine(m, a).Undo(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestOtherBoot: what a Boot step did in another boot is undone only where something is there.
func TestOtherBoot(t *testing.T) {
	for name, there := range map[string]bool{"gone": false, "there again": true} {
		k, m := newKernel(), &memory{}
		steps := []*fake{k.step("file", installer.Persistent), k.step("tree", installer.Boot)}
		apply(t, engineAt("boot-1", m, steps...), installer.Options{})
		k.on["tree"], k.calls = there, nil
		if err := engineAt("boot-2", m, steps...).Undo(ctx); err != nil {
			t.Fatal(err)
		}
		want := []string{"undo file"}
		if there {
			want = []string{"undo tree", "undo file"}
		}
		if !slices.Equal(k.calls, want) || m.data != nil {
			t.Errorf("%s: %v, want %v; journal %s", name, k.calls, want, m.data)
		}
	}
}

// TestOtherBootForgetsWhatWasKept: the kernel state before the first change went with its boot.
func TestOtherBootForgetsWhatWasKept(t *testing.T) {
	k, m := newKernel(), &memory{}
	var kept []string
	for _, s := range []*fake{k.step("file", installer.Persistent), k.step("tree", installer.Boot)} {
		s.apply = func(r *installer.Record) error {
			return r.Keep(kept[0])
		}
		s.undo = func(r installer.Record) error {
			var v string
			_, err := r.Kept(&v)
			kept = append(kept, string(s.id)+" "+v)
			return err
		}
		s.probe = nil // always absent: applied each time
		kept = []string{"one"}
		apply(t, engineAt("boot-1", m, s), installer.Options{})
		kept = []string{"two"}
		apply(t, engineAt("boot-2", m, s), installer.Options{})
		if err := engineAt("boot-2", m, s).Undo(ctx); err != nil {
			t.Fatal(err)
		}
		want := map[installer.ID]string{"file": "file one", "tree": "tree two"}[s.id]
		if kept[1] != want {
			t.Errorf("undo of %s got %q, want %q", s.id, kept[1], want)
		}
	}
}

// TestCutBetweenChangeAndDone: a satisfied step whose record is open is marked done once.
func TestCutBetweenChangeAndDone(t *testing.T) {
	k, m := newKernel(), &memory{}
	a := k.step("a", 0)
	good := a.apply
	a.apply = func(r *installer.Record) error {
		if err := good(r); err != nil {
			return err
		}
		return errors.New("killed")
	}
	if _, err := engine(m, a).Apply(ctx, installer.Options{}); err == nil {
		t.Fatal("no error")
	}
	saves := m.saves
	for range 2 {
		apply(t, engine(m, a), installer.Options{})
	}
	if m.saves != saves+1 || !strings.Contains(string(m.data), `"done": true`) {
		t.Errorf("%d saves; %s", m.saves-saves, m.data)
	}
}

func TestStepThatThisVersionDoesNotKnow(t *testing.T) {
	k, m := newKernel(), &memory{}
	apply(t, engine(m, k.step("a", 0), k.step("new", 0)), installer.Options{})
	k.calls = nil
	err := engine(m, k.step("a", 0)).Undo(ctx)
	if err == nil || !strings.Contains(err.Error(), "step new") {
		t.Errorf("%v", err)
	}
	if !slices.Equal(k.calls, []string{"undo a"}) || !strings.Contains(string(m.data), `"new"`) {
		t.Errorf("%v; %s", k.calls, m.data)
	}
}
