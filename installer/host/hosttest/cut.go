package hosttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
)

// Host is a fresh host that a scenario made.
type Host struct {
	// Engine returns the engine as a process that has just started would have it: nothing but
	// the host itself is carried over between two calls. All changes of all steps and of the
	// journal ask the gate.
	Engine func(gate host.Gate) *installer.Engine
	// Snapshot describes all that minhost may have changed: Snapshot(root), a table, a tree.
	Snapshot func() map[string]string
	// Settled, which may be nil, describes a host after apply in words that are the same on every
	// fresh host: an apply that went on after a cut must end where one without a cut does.
	Settled func() map[string]string
	// Close may be nil. CutEverywhere makes some hundreds of hosts.
	Close func()
}

// Scenario makes a host before minhost was there.
type Scenario func(t testing.TB) Host

// CutEverywhere kills apply and undo before each change they make, on a fresh host each time, and
// holds what DESIGN.md section 9 promises: the next apply converges, one more changes nothing (the
// journal included), undo gives back the snapshot; undo right after the cut gives it back too; and
// an undo that was cut is ended by the next undo, or turned round by an apply. It returns the
// changes of a whole apply.
func CutEverywhere(t *testing.T, s Scenario) []string {
	t.Helper()
	c := &cutter{t: t, scenario: s}
	applied := c.everywhere()
	for _, f := range c.failed {
		t.Error(f)
	}
	return applied
}

// cutter gathers what failed, so that the loop itself can be tested.
type cutter struct {
	t        testing.TB
	scenario Scenario
	settled  map[string]string
	failed   []string
}

// everywhere stops at the first cut that goes wrong: the next ones would say the same again.
func (c *cutter) everywhere() []string {
	applied, undone := c.whole()
	for n := 1; n <= len(applied) && len(c.failed) == 0; n++ {
		c.cutApply(n, applied[n-1], c.converge)
		c.cutApply(n, applied[n-1], c.undo)
	}
	for n := 1; n <= len(undone) && len(c.failed) == 0; n++ {
		c.cutUndo(n, undone[n-1], c.undo)
		c.cutUndo(n, undone[n-1], c.converge)
	}
	return applied
}

// visit makes a host for one look, and says where it was when it fails.
func (c *cutter) visit(where string, f func(h Host) []string) {
	h := c.scenario(c.t)
	if h.Close != nil {
		defer h.Close()
	}
	if bad := f(h); len(bad) > 0 {
		c.failed = append(c.failed, where+":\n  "+strings.Join(bad, "\n  "))
	}
}

// whole applies and undoes without a cut, and returns the changes of both.
func (c *cutter) whole() (applied, undone []string) {
	c.visit("without a cut", func(h Host) []string {
		before := h.Snapshot()
		gate, tally := Count()
		if _, err := h.Engine(gate).Apply(context.Background(), installer.Options{}); err != nil {
			return []string{"apply: " + err.Error()}
		}
		applied = tally.Changes()
		if len(applied) == 0 {
			return []string{"apply changed nothing: does every edge of the steps ask the gate?"}
		}
		if h.Settled != nil {
			c.settled = h.Settled()
		}
		if bad := settled(h); len(bad) > 0 {
			return bad
		}
		gate, tally = Count()
		if err := h.Engine(gate).Undo(context.Background()); err != nil {
			return []string{"undo: " + err.Error()}
		}
		undone = tally.Changes()
		return Diff(before, h.Snapshot())
	})
	return applied, undone
}

func (c *cutter) cutApply(n int, change string, then func(Host, map[string]string) []string) {
	c.visit("apply cut before "+at(n, change), func(h Host) []string {
		before := h.Snapshot()
		gate, _ := Cut(n)
		_, err := h.Engine(gate).Apply(context.Background(), installer.Options{})
		if !errors.Is(err, ErrCut) {
			return []string{"the cut is lost on the way: " + text(err)}
		}
		return then(h, before)
	})
}

func (c *cutter) cutUndo(n int, change string, then func(Host, map[string]string) []string) {
	c.visit("undo cut before "+at(n, change), func(h Host) []string {
		before := h.Snapshot()
		if _, err := h.Engine(nil).Apply(context.Background(), installer.Options{}); err != nil {
			return []string{"apply: " + err.Error()}
		}
		gate, _ := Cut(n)
		if err := h.Engine(gate).Undo(context.Background()); !errors.Is(err, ErrCut) {
			return []string{"the cut is lost on the way: " + text(err)}
		}
		return then(h, before)
	})
}

// converge applies again, asks whether that was all, and undoes.
func (c *cutter) converge(h Host, before map[string]string) []string {
	if _, err := h.Engine(nil).Apply(context.Background(), installer.Options{}); err != nil {
		return []string{"apply again: " + err.Error()}
	}
	if bad := settled(h); len(bad) > 0 {
		return bad
	}
	if h.Settled != nil {
		if diff := Diff(c.settled, h.Settled()); len(diff) > 0 {
			return append([]string{"apply after the cut ends elsewhere than one without:"}, diff...)
		}
	}
	return c.undo(h, before)
}

func (c *cutter) undo(h Host, before map[string]string) []string {
	if err := h.Engine(nil).Undo(context.Background()); err != nil {
		return []string{"undo: " + err.Error()}
	}
	return Diff(before, h.Snapshot())
}

// settled says what is wrong with a host on which apply came to its end.
func settled(h Host) []string {
	plan := h.Engine(nil).Plan(context.Background())
	if !plan.Finished() {
		return []string{"not finished after apply:\n" + plan.Table()}
	}
	gate, tally := Count()
	report, err := h.Engine(gate).Apply(context.Background(), installer.Options{})
	if err != nil {
		return []string{"apply of a finished host: " + err.Error()}
	}
	if tally.N() > 0 || report.Changed() > 0 {
		return append([]string{"apply of a finished host changes it:"}, tally.Changes()...)
	}
	return nil
}

func at(n int, change string) string {
	return fmt.Sprintf("change %d (%s)", n, change)
}

func text(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}
