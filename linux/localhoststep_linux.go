package linux

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/linux/belt"
	"github.com/gominimal/minhost/linux/cgroup"
	"github.com/gominimal/minhost/linux/hook"
	"github.com/gominimal/minhost/linux/localhost"
)

// LocalhostStep attaches the programs that give boxes a localhost of their own. Where the kernel lacks one of
// their hooks the host is finished without: boxes share the host's localhost then, and their plans say so.
type LocalhostStep struct{ Ground Ground }

var _ installer.Step = LocalhostStep{}

// ID implements installer.Step.
func (LocalhostStep) ID() installer.ID { return "localhost" }

// Describe implements installer.Step.
func (LocalhostStep) Describe() string {
	return "attach the programs that give each box its own localhost"
}

// Lifetime implements installer.Step.
func (LocalhostStep) Lifetime() installer.Lifetime { return installer.Boot }

// Required implements installer.Step.
func (LocalhostStep) Required() bool { return false }

// Probe asks the kernel which programs are attached, and whether it would take them.
func (s LocalhostStep) Probe(context.Context) (installer.Observation, error) {
	o := installer.Observation{Private: true, Loses: "boxes share the host's localhost: servers on one port collide", Next: "sudo minhost verify"}
	if os.Geteuid() != 0 {
		o.State, o.Detail = installer.Unknown, "looking at attached programs needs root"
		return o, nil
	}
	var r hook.Report
	err := s.Ground.localhost(func(l *localhost.Set) (err error) {
		r, err = l.Probe()
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

// Apply attaches, or replaces in place what an older version attached.
func (s LocalhostStep) Apply(context.Context, *installer.Record) error {
	return s.Ground.localhost((*localhost.Set).Apply)
}

// Undo detaches ours, from under no live box. With the tree gone the guard above it is left.
func (s LocalhostStep) Undo(context.Context, installer.Record) error {
	if err := s.Ground.vacant(); err != nil {
		return err
	}
	err := s.Ground.localhost((*localhost.Set).Detach)
	if _, gone := withoutTree(installer.Observation{}, err); !gone {
		return err
	}
	return s.Ground.unguard()
}

// unguard takes the guard off the root of the hierarchy.
func (g Ground) unguard() error {
	m, err := cgroup.FindMountHere()
	if err != nil {
		return nil // no hierarchy, no guard
	}
	root, err := os.Open(m.Point)
	if err != nil {
		return fmt.Errorf("localhost: %w", err)
	}
	defer root.Close()
	return localhost.Unguard(int(root.Fd()), g.Gate)
}

// localhost calls f with the programs of the tree's boxes.
func (g Ground) localhost(f func(*localhost.Set) error) error {
	t, err := g.boxes()
	if err != nil {
		return err
	}
	defer t.Close()
	return localhostOf(t, g, f)
}

func localhostOf(t *cgroup.Tree, g Ground, f func(*localhost.Set) error) error {
	fd, err := t.BoxesFD()
	if err != nil {
		return err
	}
	root, err := os.Open(t.Mount().Point)
	if err != nil {
		return fmt.Errorf("localhost: %w", err)
	}
	defer root.Close()
	cookie, err := belt.NetnsCookie()
	if err != nil {
		return err
	}
	c := localhost.Fit(localhost.Config{NetnsCookie: cookie, Marks: g.sentMarks()})
	s, err := localhost.New(fd, int(root.Fd()), t.Level(), c, g.Gate)
	if err != nil {
		return err
	}
	return f(s)
}

func (g Ground) sentMarks() localhost.Marks {
	m := g.Marks.OrDefault()
	sent, vary := m.Sent()
	return localhost.Marks{Sent: sent, Vary: vary, Admit: m.Ingress}
}

// HomesOf opens the maps of the attached programs. They are to be attached exactly: another version's maps
// would be filled for programs that do something else. The caller closes it.
func (g Ground) HomesOf(t *cgroup.Tree) (*localhost.Homes, error) {
	var h *localhost.Homes
	err := localhostOf(t, g, func(s *localhost.Set) error {
		r, err := s.Probe()
		if err != nil {
			return err
		}
		if r.State != installer.Satisfied {
			return errors.New(r.Detail)
		}
		h, err = s.Homes()
		return err
	})
	return h, err
}

// Guarded lists the addresses that the attached guard keeps for boxes.
func (g Ground) Guarded() ([]netip.Addr, error) {
	var out []netip.Addr
	err := g.localhost(func(s *localhost.Set) error {
		h, err := s.Homes()
		if err != nil {
			return err
		}
		defer h.Close()
		for _, home := range h.List() {
			out = append(out, home.Address)
		}
		return nil
	})
	return out, err
}
