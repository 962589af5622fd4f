package linux

import (
	"context"
	"errors"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/linux/belt"
	"github.com/gominimal/minhost/linux/hook"
)

// BeltStep attaches the fail-closed programs to the tree's boxes. It comes before the table and is
// undone after it: at no moment is there a rule that approves and no belt that asks for it. Where the kernel lacks
// what it needs there is nothing to attach: the helper owns the table instead.
type BeltStep struct{ Ground Ground }

var _ installer.Step = BeltStep{}

// ID implements installer.Step.
func (BeltStep) ID() installer.ID { return "belt" }

// Describe implements installer.Step.
func (BeltStep) Describe() string {
	return "attach the belt: boxes reach nothing that the table did not approve"
}

// Lifetime implements installer.Step.
func (BeltStep) Lifetime() installer.Lifetime { return installer.Boot }

// Required implements installer.Step.
func (BeltStep) Required() bool { return true }

// Probe asks the kernel which programs are attached.
func (s BeltStep) Probe(context.Context) (installer.Observation, error) {
	o := installer.Observation{Private: true, Loses: "a flushed firewall opens every box", Next: "sudo minhost verify"}
	if lacks := s.Ground.Beltless(); lacks != nil {
		o.State, o.Detail = installer.Satisfied, lacks.Error()+"; instead the table belongs to the helper, which verify checks"
		return o, nil
	}
	var r hook.Report
	err := s.Ground.Belt(func(b *belt.Belt) (err error) {
		r, err = b.Probe()
		return err
	})
	if o, done := withoutTree(o, err); done {
		return o, nil
	}
	if err != nil {
		return o, err
	}
	o.State, o.Detail = r.State, r.Detail
	return o, nil
}

// withoutTree is the observation of belt and table while the tree is missing.
func withoutTree(o installer.Observation, err error) (installer.Observation, bool) {
	switch {
	case errors.Is(err, errNoTree):
		o.State, o.Detail, o.Next = installer.Absent, errNoTree.Error(), ""
	case mountCause(err) != "":
		o.State, o.Detail, o.Next = installer.Blocked, mountCause(err), "findmnt -t cgroup2"
	default:
		return o, false
	}
	return o, true
}

// Apply attaches, or replaces in place what an older version attached.
func (s BeltStep) Apply(context.Context, *installer.Record) error {
	return s.Ground.Belt((*belt.Belt).Apply)
}

// Undo detaches ours, from under no live box. With the tree gone the programs are gone too.
func (s BeltStep) Undo(context.Context, installer.Record) error {
	if err := s.Ground.vacant(); err != nil {
		return err
	}
	if s.Ground.Beltless() != nil {
		return nil
	}
	err := s.Ground.Belt((*belt.Belt).Detach)
	if _, gone := withoutTree(installer.Observation{}, err); gone {
		return nil
	}
	return err
}
