package systemd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
)

// UnitsID is the id of UnitsStep.
const UnitsID installer.ID = "units"

// UnitsStep writes and enables the units, so that the next boot brings everything back. It starts
// none of them: the services step does.
type UnitsStep struct {
	Units     []Unit
	FS        host.FS
	Manager   Manager
	Systemctl Systemctl
	// Clean removes what the services made, at a boot too, once everything has ended; nil means nothing.
	Clean func(context.Context) error
}

// unitAttr is what systemd expects; anything more open earns a warning in its log at every boot.
var unitAttr = host.Attr{UID: 0, GID: 0, Mode: 0o644}

func (s *UnitsStep) ID() installer.ID { return UnitsID }
func (s *UnitsStep) Describe() string {
	return "write and enable the units " + strings.Join(s.names(), ", ")
}
func (s *UnitsStep) Lifetime() installer.Lifetime { return installer.Persistent }
func (s *UnitsStep) Required() bool               { return true }

func (s *UnitsStep) names() []string {
	names := make([]string, 0, len(s.Units))
	for _, u := range s.Units {
		names = append(names, u.Name)
	}
	return names
}

// enabled are the names of those that minhost enables.
func (s *UnitsStep) enabled() []string {
	return slices.DeleteFunc(s.names(), func(name string) bool { return slices.Contains(admins[:], name) })
}

const unitsLose = "after a reboot no box can start until somebody runs minhost apply"

// Probe compares each file with what would be written and asks systemd whether it has read and
// enabled it.
func (s *UnitsStep) Probe(ctx context.Context) (installer.Observation, error) {
	obs := installer.Observation{Loses: unitsLose, Files: s.files()}
	switch {
	case s.Manager.Kind != Systemd:
		obs.State, obs.Detail = installer.Blocked, s.Manager.Reason
		return obs, nil
	case s.Manager.Generated != "":
		obs.State, obs.Detail = installer.Blocked, s.Manager.Generated
		obs.Next = "minhost finalize-install --show prints the units: declare them in your configuration"
		return obs, nil
	}
	for _, u := range s.Units {
		state, detail, err := s.probeFile(u)
		if err != nil {
			return obs, err
		}
		if obs.State = worse(obs.State, state); obs.State == state && state != installer.Satisfied {
			obs.Detail = detail
		}
		if state == installer.Foreign {
			obs.Next = "cat " + u.Path
			return obs, nil
		}
	}
	if obs.State != installer.Satisfied {
		return obs, nil
	}
	return s.probeManager(ctx, obs)
}

// worse orders the states of several files: absent before drifted, since nothing of ours is lost
// by writing; satisfied only when all are.
func worse(a, b installer.State) installer.State {
	rank := map[installer.State]int{installer.Satisfied: 1, installer.Drifted: 2, installer.Absent: 3, installer.Foreign: 4}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

func (s *UnitsStep) probeFile(u Unit) (installer.State, string, error) {
	info, err := s.FS.Lstat(u.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return installer.Absent, u.Path + " does not exist", nil
	}
	if err != nil {
		return installer.Unknown, "", fmt.Errorf("read %s: %w", u.Path, err)
	}
	if !info.Mode.IsRegular() {
		return installer.Foreign, u.Path + " is not a regular file (masked, perhaps)", nil
	}
	b, err := s.FS.ReadFile(u.Path)
	if err != nil {
		return installer.Unknown, "", fmt.Errorf("read %s: %w", u.Path, err)
	}
	attr := info.Attr
	attr.Mode = attr.Mode.Perm()
	switch origin := OriginOf(b); {
	case origin == Stranger:
		return installer.Foreign, u.Path + " is not written by minhost", nil
	case bytes.Equal(b, u.Content) && attr == unitAttr:
		return installer.Satisfied, "", nil
	case origin == Edited:
		return installer.Drifted, u.Path + " was edited (systemctl edit keeps changes apart, in a drop-in)", nil
	default:
		return installer.Drifted, u.Path + " is of another version, owner or mode", nil
	}
}

func (s *UnitsStep) probeManager(ctx context.Context, obs installer.Observation) (installer.Observation, error) {
	all, err := s.Systemctl.Show(ctx, s.names()...)
	if err != nil {
		return obs, err
	}
	for _, name := range s.names() {
		switch st := all[name]; {
		case st.Stale || st.Load != "loaded":
			obs.State, obs.Detail = installer.Drifted, "systemd has not read "+name
			return obs, nil
		case st.File != "enabled" && slices.Contains(s.enabled(), name):
			obs.State, obs.Detail = installer.Drifted, fmt.Sprintf("%s is %s", name, orNone(st.File))
			return obs, nil
		}
	}
	obs.Detail, obs.Loses = fmt.Sprintf("%d units written and read, %d enabled", len(s.Units), len(s.enabled())), ""
	return obs, nil
}

func orNone(s string) string {
	if s == "" {
		return "not enabled"
	}
	return s
}

func (s *UnitsStep) files() []installer.File {
	files := make([]installer.File, 0, len(s.Units))
	for _, u := range s.Units {
		files = append(files, installer.File{Path: u.Path, Mode: uint32(unitAttr.Mode), Content: u.Content})
	}
	return files
}

// Apply writes what differs, makes systemd read it, and enables all of them.
func (s *UnitsStep) Apply(ctx context.Context, rec *installer.Record) error {
	if err := rec.Keep(s.names()); err != nil {
		return err
	}
	for _, u := range s.Units {
		state, detail, err := s.probeFile(u)
		switch {
		case err != nil:
			return err
		case state == installer.Satisfied:
			continue
		case state == installer.Foreign:
			return fmt.Errorf("write %s: %s", u.Path, detail)
		}
		if err := s.FS.WriteFile(u.Path, u.Content, unitAttr); err != nil {
			return fmt.Errorf("write %s: %w", u.Path, err)
		}
	}
	if err := s.Systemctl.Reload(ctx); err != nil {
		return err
	}
	return s.Systemctl.Enable(ctx, s.enabled()...)
}
