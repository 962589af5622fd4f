package resolved

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/filestep"
)

// DelegateStep writes the delegate file, wherever systemd-resolved is installed: one before 258 does not
// read it, and the first start of a newer one finds the names in place. Nobody is told to read it at once,
// nor to forget it: a reload of resolved ends every lookup under way, of other names too, without an answer
// (measured on 262). Until it starts again the link does the work, and after an undo names of the zone fail
// instead of not being found. Which of file and link does the work is NamesStep's to see. Optional.
type DelegateStep struct {
	*filestep.Step
	Params Params
	FS     host.FS
	Bus    interface {
		Running(context.Context) (bool, error)
		Delegate(ctx context.Context, name string) (Delegate, error)
	}
}

// NewDelegateStep returns the step of this host.
func NewDelegateStep(fsys host.FS, bus DBus, p Params) *DelegateStep {
	f := p.DelegateFile()
	return &DelegateStep{
		Step: filestep.New(fsys, filestep.Spec{
			ID: "delegate", Describe: fmt.Sprintf("have systemd-resolved from 258 on ask the answerer for ~%s without a link: write %s", p.Zone, f.Path),
			Optional: true, Loses: "systemd 258 and later need link " + p.Link + " too",
			Path: f.Path, Content: f.Content, Attr: host.Attr{Mode: 0o644}, Marker: marker,
		}),
		Params: p, FS: fsys, Bus: bus,
	}
}

// programs are where resolved is.
var programs = [...]string{"/usr/lib/systemd/systemd-resolved", "/lib/systemd/systemd-resolved"}

func (s *DelegateStep) installed() (bool, error) {
	for _, p := range programs {
		_, err := s.FS.Lstat(p)
		if !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	return false, nil
}

// Probe looks at the file, and then at what a running resolved made of it.
func (s *DelegateStep) Probe(ctx context.Context) (installer.Observation, error) {
	if ok, err := s.installed(); !ok || err != nil {
		return installer.Observation{State: installer.Satisfied, Detail: "no systemd-resolved on this host"}, err
	}
	obs, err := s.Step.Probe(ctx)
	if err != nil || obs.State != installer.Satisfied {
		return obs, err
	}
	d, known, err := s.loaded(ctx)
	switch {
	case errors.Is(err, ErrNoDelegate):
		obs.Detail, err = obs.Detail+"; systemd-resolved reads it when it starts again", nil
	case err != nil || !known:
	case s.Params.wrong(d) != "":
		obs.State, obs.Detail, obs.Next = installer.Foreign, s.Params.wrong(d), "ls /etc/systemd/dns-delegate.d /run/systemd/dns-delegate.d"
	case d.strict() != "":
		obs.Detail = d.strict() + ": the link does it"
	}
	return obs, err
}

// loaded is what a running resolved has; known is false where nobody reads the file.
func (s *DelegateStep) loaded(ctx context.Context) (d Delegate, known bool, err error) {
	if known, err = s.Bus.Running(ctx); !known || err != nil {
		return d, false, err
	}
	d, err = s.Bus.Delegate(ctx, delegateID)
	if errors.Is(err, ErrNoDelegates) {
		return d, false, nil
	}
	return d, true, err
}
