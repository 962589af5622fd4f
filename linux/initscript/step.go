package initscript

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/filestep"
	"github.com/gominimal/minhost/linux/systemd"
)

// ID is that of the step that writes units on a host with systemd.
const ID installer.ID = "units"

// callTimeout bounds one call of the manager's program.
const callTimeout = 30 * time.Second

// Step writes the script and puts it into its runlevel.
type Step struct {
	*filestep.Step
	fs      host.FS
	run     host.Runner
	manager manager
	teller  teller
	program string // of the teller, absolute
	service string // rc-service, absolute
	kind    systemd.Kind
}

// New returns the step. ok is false where the manager is none of ours, or has no program to tell it.
func New(fsys host.FS, run host.Runner, env systemd.Env, kind systemd.Kind, program string) (s *Step, ok bool, err error) {
	m, known := managers[kind]
	if !known {
		return nil, false, nil
	}
	if kind == systemd.OpenRC && env.Exists(debianNetwork) {
		m = openRC("sysinit")
	}
	for _, t := range m.tellers {
		found := systemd.Find(env, t.program)
		if found == "" {
			continue
		}
		text, err := Script(kind, program)
		if err != nil {
			return nil, false, err
		}
		spec := filestep.Spec{
			ID: ID, Describe: fmt.Sprintf("bring everything back at boot: write %s for %s and put it into its runlevel", Path, kind),
			Loses: "after a reboot nothing is there until somebody runs minhost apply", Optional: true,
			Path: Path, Content: text, Attr: host.Attr{Mode: 0o755}, Marker: Marker,
		}
		return &Step{filestep.New(fsys, spec), fsys, run, m, t, found, systemd.Find(env, "rc-service"), kind}, true, nil
	}
	return nil, false, nil
}

// Probe looks at the script and at the link to it.
func (s *Step) Probe(ctx context.Context) (installer.Observation, error) {
	obs, err := s.Step.Probe(ctx)
	if err != nil || obs.State != installer.Satisfied {
		return obs, err
	}
	in, err := s.linked()
	switch {
	case err != nil:
		return obs, err
	case !in:
		obs.State, obs.Detail = installer.Drifted, fmt.Sprintf("%s is in no runlevel: there is no %s", Path, s.manager.linked)
	default:
		obs.Detail, obs.Loses = fmt.Sprintf("%s starts %s", s.kind, Path), ""
	}
	return obs, nil
}

// linked tells whether the script is in its runlevel: by the link, since what the managers print changes.
func (s *Step) linked() (bool, error) {
	names, err := s.fs.ReadDir(filepath.Dir(s.manager.linked))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	for _, link := range names {
		if ok, _ := filepath.Match(filepath.Base(s.manager.linked), link); ok { // a constant pattern
			return true, nil
		}
	}
	return false, nil
}

// Apply writes, then tells the manager.
func (s *Step) Apply(ctx context.Context, rec *installer.Record) error {
	if err := s.Step.Apply(ctx, rec); err != nil {
		return err
	}
	if in, err := s.linked(); err != nil || in {
		return err
	}
	return s.call(ctx, s.teller.add)
}

// Undo takes the script out of its runlevel and removes it, in the order that the manager wants: OpenRC
// takes out what is there, sysvinit what is gone.
func (s *Step) Undo(ctx context.Context, rec installer.Record) error {
	in, err := s.linked()
	if err != nil {
		return err
	}
	out := func() error {
		if !in {
			return nil
		}
		return s.call(ctx, s.teller.without)
	}
	if s.kind == systemd.OpenRC {
		return errors.Join(out(), s.zap(ctx), s.Step.Undo(ctx, rec))
	}
	if err := s.Step.Undo(ctx, rec); err != nil {
		return err // it stays, and so does its link
	}
	return out()
}

// zap has OpenRC forget that the script was run. It runs nothing.
func (s *Step) zap(ctx context.Context) error {
	if _, err := s.fs.Lstat(started); err != nil || s.service == "" {
		return nil
	}
	_, err := s.run.Run(ctx, host.Command{Path: s.service, Args: []string{name, "zap"}, Timeout: callTimeout})
	return err
}

func (s *Step) call(ctx context.Context, args []string) error {
	_, err := s.run.Run(ctx, host.Command{Path: s.program, Args: args, Timeout: callTimeout})
	return err
}
