package resolved

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/godbus/dbus/v5"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/filestep"
)

// UnmanagedStep writes one of UnmanagedFiles and tells the manager that reads it. Optional: without it
// the link works until the manager takes it.
type UnmanagedStep struct {
	*filestep.Step
	FS host.FS
	// Folder is the manager's own; without it there is no such manager, and nothing to do.
	Folder string
	// Reload has a running manager read its files again; nil of one that does not run.
	Reload func(context.Context) error
}

// UnmanagedSteps are one step for each network manager that minhost knows.
func UnmanagedSteps(fsys host.FS, bus DBus, link string) []*UnmanagedStep {
	managers := [...]struct {
		id           installer.ID
		name, folder string
		reload       reload
	}{
		{"networkd", "systemd-networkd", "/etc/systemd/network",
			reload{"org.freedesktop.network1", "/org/freedesktop/network1", "org.freedesktop.network1.Manager.Reload", nil}},
		{"networkmanager", "NetworkManager", "/etc/NetworkManager",
			// 1: the configuration files, and nothing that would touch a connection.
			reload{"org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager", "org.freedesktop.NetworkManager.Reload", []any{uint32(1)}}},
	}
	var steps []*UnmanagedStep
	for i, f := range UnmanagedFiles(link) {
		m := managers[i]
		steps = append(steps, &UnmanagedStep{
			Step: filestep.New(fsys, filestep.Spec{
				ID: m.id, Describe: fmt.Sprintf("keep %s away from link %s: write %s", m.name, link, f.Path), Optional: true,
				Loses: fmt.Sprintf("%s may take link %s, and the names of boxes with it", m.name, link),
				Path:  f.Path, Content: f.Content, Attr: host.Attr{Mode: 0o644}, Marker: marker,
			}),
			FS: fsys, Folder: m.folder,
			Reload: func(ctx context.Context) error { return bus.reload(ctx, m.reload) },
		})
	}
	return steps
}

// Probe is Satisfied where the manager is not installed.
func (s *UnmanagedStep) Probe(ctx context.Context) (installer.Observation, error) {
	if _, err := s.FS.Lstat(s.Folder); errors.Is(err, fs.ErrNotExist) {
		return installer.Observation{State: installer.Satisfied, Detail: "no " + filepath.Base(s.Folder) + " on this host: no " + s.Folder}, nil
	}
	return s.Step.Probe(ctx)
}

// Apply writes the file before there is a link to be taken.
func (s *UnmanagedStep) Apply(ctx context.Context, rec *installer.Record) error {
	return errors.Join(s.Step.Apply(ctx, rec), s.Reload(ctx))
}

// Undo removes it, after the link.
func (s *UnmanagedStep) Undo(ctx context.Context, rec installer.Record) error {
	return errors.Join(s.Step.Undo(ctx, rec), s.Reload(ctx))
}

// reload is a call on the bus by which a manager reads its files again.
type reload struct {
	name   string
	path   dbus.ObjectPath
	method string
	args   []any
}

func (d DBus) reload(ctx context.Context, r reload) error {
	conn, err := d.Open(ctx)
	if err != nil {
		return nil // no bus, so no manager that listens on it
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	// Not started for this: one that does not run reads its files when it starts.
	err = conn.Object(r.name, r.path).CallWithContext(ctx, r.method, dbus.FlagNoAutoStart, r.args...).Err
	var e dbus.Error
	if errors.As(err, &e) && (e.Name == "org.freedesktop.DBus.Error.ServiceUnknown" || e.Name == "org.freedesktop.DBus.Error.NameHasNoOwner") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("have %s read its files again: %w", r.name, err)
	}
	return nil
}
