package standalone

import (
	"context"
	"errors"

	"github.com/gominimal/minhost/installer"
)

// BootID is the id of BootStep: the same step that writes units on a host with systemd.
const BootID installer.ID = "units"

// BootStep stands in the plan for what only a managed host gets.
type BootStep struct {
	// Reason is why there is no service manager, as systemd.Detect says it.
	Reason string
}

func (s *BootStep) ID() installer.ID             { return BootID }
func (s *BootStep) Describe() string             { return "bring everything back at boot" }
func (s *BootStep) Lifetime() installer.Lifetime { return installer.Persistent }
func (s *BootStep) Required() bool               { return false }

// Probe is Blocked always: no file of ours makes another init run us.
func (s *BootStep) Probe(context.Context) (installer.Observation, error) {
	return installer.Observation{
		State:  installer.Blocked,
		Detail: s.Reason + ": nothing runs minhost apply at boot",
		Loses:  "after a reboot nothing is there until somebody runs minhost apply",
		Next:   "run minhost apply --at-boot, as root, from your init or container entry point",
	}, nil
}

// Apply is never called on a Blocked step.
func (s *BootStep) Apply(context.Context, *installer.Record) error {
	return errors.New("boot: " + s.Reason + ": run minhost apply from your init or container entry point")
}

// Undo has nothing to undo.
func (s *BootStep) Undo(context.Context, installer.Record) error { return nil }
