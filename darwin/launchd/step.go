package launchd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/filestep"
)

// Spec is a job and what shows that it works.
type Spec struct {
	ID       installer.ID
	Describe string
	Loses    string
	Job      Job
	// LogOwner owns the log: a job that is not root's could not open it otherwise.
	LogOwner int
	// Free is asked before a job is loaded anew: it fails when something is in the way, a taken port
	// for example. Nil is nothing.
	Free func(context.Context) error
	// Works asks the running job for evidence; nil where there is none to be had (a one-shot job, whose
	// effect is a step of its own).
	Works func(context.Context) error
	// Clean removes what the job made, once it has ended; nil is nothing.
	Clean func() error
}

// Step has one job written and loaded.
type Step struct {
	spec    Spec
	fs      host.FS
	control Control
	file    *filestep.Step
	content []byte
	broken  error // of rendering
}

var _ installer.Step = (*Step)(nil)

// plistAttr is what launchd insists on: root's, and writable by nobody else, whatever the umask is.
var plistAttr = host.Attr{Mode: 0o644}

// New returns the step. A job that cannot be rendered is the error of its probe.
func New(files host.FS, control Control, spec Spec) *Step {
	s := &Step{spec: spec, fs: files, control: control}
	s.content, s.broken = Render(spec.Job)
	s.file = filestep.New(files, filestep.Spec{
		ID: spec.ID, Describe: spec.Describe, Loses: spec.Loses, Path: spec.Job.Path(), Content: s.content,
		Attr: plistAttr, Marker: Marker,
	})
	return s
}

func (s *Step) ID() installer.ID             { return s.spec.ID }
func (s *Step) Describe() string             { return s.spec.Describe }
func (s *Step) Lifetime() installer.Lifetime { return installer.Persistent }
func (s *Step) Required() bool               { return true }

// Probe compares the file, then asks launchd whether the next boot would start the job, then the job.
func (s *Step) Probe(ctx context.Context) (installer.Observation, error) {
	if s.broken != nil {
		return installer.Observation{}, s.broken
	}
	obs, err := s.file.Probe(ctx)
	if err != nil || obs.State != installer.Satisfied {
		return obs, err
	}
	label := s.spec.Job.Label
	drifted := func(detail, next string) (installer.Observation, error) {
		obs.State, obs.Detail, obs.Next = installer.Drifted, detail, next
		return obs, nil
	}
	off, err := s.control.Disabled(ctx, label)
	if err != nil {
		return obs, err
	}
	if off {
		return drifted(label+" is disabled in launchd: no boot starts it", "sudo launchctl enable "+target(label))
	}
	status, err := s.control.Status(ctx, label)
	if err != nil {
		return obs, err
	}
	if !status.Loaded {
		return drifted(label+" is written but launchd has not loaded it, and it is not disabled: somebody booted it out, or switched it off in "+
			"System Settings > General > Login Items", "minhost finalize-install")
	}
	if s.spec.Works == nil {
		obs.Detail, obs.Loses = "written and loaded ("+status.String()+")", ""
		return obs, nil
	}
	if err := s.spec.Works(ctx); err != nil {
		return drifted(fmt.Sprintf("%s is loaded (%s) but does not work: %v", label, status, err), "tail "+s.spec.Job.Log)
	}
	obs.Detail, obs.Loses = "written, loaded, and it answers", ""
	return obs, nil
}

// Apply writes the file and has the job running from it. A job that only gets another program is
// started again and keeps its sockets. One that cannot be loaded anew gets its old file back.
func (s *Step) Apply(ctx context.Context, rec *installer.Record) error {
	old, err := s.fs.ReadFile(s.spec.Job.Path())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	status, err := s.control.Status(ctx, s.spec.Job.Label)
	if err != nil {
		return err
	}
	if status.Loaded && !bytes.Equal(old, s.content) && sameButProgram(old, s.content) {
		err := s.again(ctx, rec)
		if err == nil || ctx.Err() != nil {
			return err
		}
		// Perhaps it is launchd that holds something wrong: from the beginning then.
	}
	if !status.Loaded && s.spec.Free != nil {
		if err := s.spec.Free(ctx); err != nil {
			return err
		}
	}
	if err := s.file.Apply(ctx, rec); err != nil {
		return err
	}
	if err := s.makeLog(); err != nil {
		return err
	}
	err = s.load(ctx)
	if err == nil || old == nil || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, s.back(ctx, old))
}

// again starts the job with the new program, and only then writes its digest: a crash in between means
// that it is started once more.
func (s *Step) again(ctx context.Context, rec *installer.Record) error {
	if !s.spec.Job.OneShot {
		if err := s.control.Kick(ctx, s.spec.Job.Label); err != nil {
			return err
		}
		if err := s.await(ctx); err != nil {
			return err
		}
	}
	return s.file.Apply(ctx, rec)
}

// back gives launchd the job that it had.
func (s *Step) back(ctx context.Context, old []byte) error {
	path := s.spec.Job.Path()
	if err := s.fs.WriteFile(path, old, plistAttr); err != nil {
		return fmt.Errorf("give %s back: %w", path, err)
	}
	if err := s.control.In(ctx, s.spec.Job.Label, path); err != nil {
		return fmt.Errorf("start the job that was there before: %w", err)
	}
	return nil
}

func (s *Step) load(ctx context.Context) error {
	if err := s.control.In(ctx, s.spec.Job.Label, s.spec.Job.Path()); err != nil {
		return err
	}
	return s.await(ctx)
}

// worksWait is how long a job may take to work after launchd took it.
const (
	worksWait  = 20 * time.Second
	worksEvery = 100 * time.Millisecond
)

// await waits for the job's own evidence: that launchd took the job says nothing.
func (s *Step) await(ctx context.Context) error {
	if s.spec.Works == nil {
		return nil
	}
	var last error
	err := s.control.poll(ctx, worksWait, worksEvery, func(ctx context.Context) (bool, error) {
		last = s.spec.Works(ctx)
		return last == nil, nil
	})
	if err == nil {
		return nil
	}
	status, serr := s.control.Status(ctx, s.spec.Job.Label)
	return errors.Join(fmt.Errorf("%s was started (launchd: %s) but does not work: %w; look: tail %s", s.spec.Job.Label, status, last, s.spec.Job.Log), serr)
}

// makeLog makes an empty log of the job's user, unless there is one.
func (s *Step) makeLog() error {
	_, err := s.fs.Lstat(s.spec.Job.Log)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.fs.WriteFile(s.spec.Job.Log, nil, host.Attr{UID: s.spec.LogOwner, Mode: 0o644})
}

// Undo ends the job, waits until it is gone, removes what it made and its log, then the file.
func (s *Step) Undo(ctx context.Context, rec installer.Record) error {
	if len(rec.Prior) == 0 {
		return nil // cut off before the first change
	}
	if err := s.control.Out(ctx, s.spec.Job.Label); err != nil {
		return err
	}
	var errs []error
	if s.spec.Clean != nil {
		errs = append(errs, s.spec.Clean())
	}
	if err := s.fs.Remove(s.spec.Job.Log); !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, s.file.Undo(ctx, rec))...)
}
