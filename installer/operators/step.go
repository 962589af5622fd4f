package operators

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
)

// Step makes one account an operator. The file is minhost's own, in its own folder: Undo
// removes it with everybody in it, unless it was there before.
type Step struct {
	FS   host.FS
	Path string
	UID  int
	Name string // for display
}

var _ installer.Step = Step{}

// ID implements installer.Step.
func (Step) ID() installer.ID { return "operator" }

// Describe implements installer.Step.
func (s Step) Describe() string {
	return fmt.Sprintf("let the runners of %s (uid %d) call the helper", s.Name, s.UID)
}

// Lifetime implements installer.Step.
func (Step) Lifetime() installer.Lifetime { return installer.Persistent }

// Required implements installer.Step.
func (Step) Required() bool { return true }

// Probe reads the list, which only root can.
func (s Step) Probe(context.Context) (installer.Observation, error) {
	o := installer.Observation{Private: true, Loses: "only root may start boxes"}
	list, err := Read(s.FS, s.Path)
	if err == nil && s.UID == 0 {
		return s.probeRoot(o)
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		o.State, o.Detail, o.Next = installer.Unknown, s.Path+" can only be looked at by root", "sudo minhost operator list"
	case err != nil:
		return o, err
	case list.Has(s.UID):
		o.State, o.Detail = installer.Satisfied, fmt.Sprintf("uid %d is an operator", s.UID)
	default:
		o.State, o.Detail = installer.Absent, fmt.Sprintf("uid %d is no operator", s.UID)
	}
	return o, nil
}

// probeRoot is for root, who may call the helper always. The list is made all the same: undo then takes it
// back with everybody whom `minhost operator add` puts into it later.
func (s Step) probeRoot(o installer.Observation) (installer.Observation, error) {
	_, err := s.FS.Lstat(s.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.State, o.Detail = installer.Absent, "no list of operators yet; root may call the helper always"
	case err != nil:
		return o, err
	default:
		o.State, o.Detail = installer.Satisfied, "root may call the helper always"
	}
	return o, nil
}

// operatorsBefore is what the journal keeps: the file that was there before the first change.
type operatorsBefore struct {
	There   bool        `json:"there"`
	Content []byte      `json:"content,omitempty"`
	UID     int         `json:"uid"`
	GID     int         `json:"gid"`
	Mode    fs.FileMode `json:"mode"`
}

// Apply adds the account. The folder is there: the journal, written before, is in it.
func (s Step) Apply(_ context.Context, rec *installer.Record) error {
	list, err := Read(s.FS, s.Path)
	if err != nil {
		return err
	}
	if err := s.keep(rec); err != nil {
		return err
	}
	if s.UID != 0 {
		list, _ = list.Add(s.UID)
	}
	return Write(s.FS, s.Path, list)
}

func (s Step) keep(rec *installer.Record) error {
	info, err := s.FS.Lstat(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return rec.Keep(operatorsBefore{})
	}
	if err != nil {
		return err
	}
	content, err := s.FS.ReadFile(s.Path)
	if err != nil {
		return err
	}
	a := info.Settable()
	return rec.Keep(operatorsBefore{There: true, Content: content, UID: a.UID, GID: a.GID, Mode: a.Mode})
}

// Undo removes the file, or gives back the one that an admin had put there before.
func (s Step) Undo(_ context.Context, rec installer.Record) error {
	var b operatorsBefore
	if ok, err := rec.Kept(&b); err != nil || !ok {
		return err // cut off before the first change
	}
	if b.There {
		return s.FS.WriteFile(s.Path, b.Content, host.Attr{UID: b.UID, GID: b.GID, Mode: b.Mode})
	}
	err := s.FS.Remove(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
