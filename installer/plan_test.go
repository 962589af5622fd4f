package installer_test

import (
	"testing"

	"github.com/gominimal/minhost/installer"
)

// TestSettled: a plan is settled when Apply would neither change nor refuse anything. An optional step
// that could be made, or that nobody could look at, is something to do; one that cannot be had is not.
func TestSettled(t *testing.T) {
	for _, c := range []struct {
		required, optional installer.State
		want               bool
	}{
		{installer.Satisfied, installer.Satisfied, true},
		{installer.Satisfied, installer.Foreign, true},
		{installer.Satisfied, installer.Blocked, true},
		{installer.Satisfied, installer.Absent, false},
		{installer.Satisfied, installer.Drifted, false},
		{installer.Satisfied, installer.Unknown, false},
		{installer.Absent, installer.Satisfied, false},
		{installer.Drifted, installer.Satisfied, false},
		{installer.Foreign, installer.Satisfied, false},
		{installer.Blocked, installer.Satisfied, false},
		{installer.Unknown, installer.Satisfied, false},
	} {
		step := func(id installer.ID, s installer.State, optional bool) *fake {
			return &fake{id: id, optional: optional, probe: func() (installer.Observation, error) { return installer.Observation{State: s}, nil }}
		}
		e := engine(&memory{}, step("a", c.required, false), step("names", c.optional, true))
		if got := e.Plan(ctx).Settled(); got != c.want {
			t.Errorf("required %s, optional %s: settled %v", c.required, c.optional, got)
		}
		report, err := e.Apply(ctx, installer.Options{})
		if does := err != nil || report.Changed() > 0; does == c.want && c.optional != installer.Unknown {
			t.Errorf("required %s, optional %s: settled %v, but Apply says %v, %v", c.required, c.optional, c.want, report, err)
		}
	}
}
