package linux

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/linux/cgroup"
)

// TreeStep makes the cgroup tree: root, holder, boxes.
type TreeStep struct {
	Ground Ground
	// Unit starts the unit whose cgroup is the root of the tree, and which makes the rest: a cgroup
	// that is there before its unit is not delegated, and systemd removes it when it likes. The tree
	// goes with the unit, not with this step. Nil where there is no service manager.
	Unit func(context.Context) error
}

var _ installer.Step = TreeStep{}

// ID implements installer.Step.
func (TreeStep) ID() installer.ID { return "tree" }

// Describe implements installer.Step.
func (s TreeStep) Describe() string {
	return "make the cgroup tree " + s.Ground.Rel + " (root-owned; one leaf a box)"
}

// Lifetime implements installer.Step.
func (TreeStep) Lifetime() installer.Lifetime { return installer.Boot }

// Required implements installer.Step.
func (TreeStep) Required() bool { return true }

// Probe reads the directories, their owner, type and controllers.
func (s TreeStep) Probe(context.Context) (installer.Observation, error) {
	o := installer.Observation{Loses: "boxes have no lifetime and no verdict"}
	t, err := s.Ground.Tree()
	if blocked := mountCause(err); blocked != "" {
		o.State, o.Detail, o.Next = installer.Blocked, blocked, "findmnt -t cgroup2"
		return o, nil
	}
	if err != nil {
		return o, err
	}
	defer t.Close()
	r, err := t.Probe()
	if err != nil {
		return o, err
	}
	switch {
	case len(r.Problems) > 0:
		o.State, o.Detail, o.Next = installer.Foreign, r.Problems[0], "ls -ld "+installer.Quote(t.Path())+" "+installer.Quote(t.Path())+"/*"
	case r.Present:
		o.State, o.Detail = installer.Satisfied, fmt.Sprintf("%s/boxes has id %d at level %d", t.Path(), r.BoxesID, r.Level)
	default:
		o.State, o.Detail = installer.Absent, "missing: "+strings.Join(r.Missing, ", ")
	}
	return o, nil
}

// mountCause says why no tree can be made here, or "".
func mountCause(err error) string {
	for _, cause := range []error{cgroup.ErrNoMount, cgroup.ErrReadOnly, cgroup.ErrNotRoot, cgroup.ErrCovered} {
		if errors.Is(err, cause) {
			return cause.Error()
		}
	}
	return ""
}

// treeMade is what the journal keeps: the directories that were not there before the first change.
type treeMade struct {
	Made []string `json:"made"`
}

// Apply makes what is missing.
func (s TreeStep) Apply(ctx context.Context, rec *installer.Record) error {
	if s.Unit != nil {
		if err := rec.Keep(treeMade{}); err != nil {
			return err
		}
		return s.Unit(ctx)
	}
	t, err := s.Ground.Tree()
	if err != nil {
		return err
	}
	r, err := t.Probe()
	if err == nil {
		err = rec.Keep(treeMade{Made: r.Missing})
	}
	if err == nil {
		err = t.Ensure()
	}
	return errors.Join(err, t.Close())
}

// Undo removes what Apply made of the tree. Leaves without a process are plans of runners that are gone; a leaf with
// processes is a live box, and an error that names it.
func (s TreeStep) Undo(_ context.Context, rec installer.Record) error {
	var kept treeMade
	if _, err := rec.Kept(&kept); err != nil || len(kept.Made) == 0 && s.Unit == nil {
		return err // cut off before the first change
	}
	t, err := s.Ground.Tree()
	if mountCause(err) != "" {
		return nil // no cgroup2, so no tree
	}
	if err != nil {
		return err
	}
	defer t.Close()
	if _, err := t.BoxesID(); err == nil {
		if err := removeEmpty(t); err != nil {
			return err
		}
	}
	if err := t.RemoveRunners(); err != nil || s.Unit != nil {
		return err
	}
	return t.Destroy(kept.Made...)
}

func removeEmpty(t *cgroup.Tree) error {
	names, err := t.List()
	if err != nil {
		return err
	}
	for _, name := range names {
		l, err := t.Open(name)
		if err != nil {
			return err
		}
		live, err := l.Populated()
		if err == nil && !live {
			err = l.Remove()
		}
		if err = errors.Join(err, l.Close()); err != nil {
			return err
		}
	}
	return nil
}
