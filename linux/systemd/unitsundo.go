package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/gominimal/minhost/installer"
)

// Undo disables and removes every unit that minhost wrote and nobody changed, whatever version
// wrote it, and then stops what still runs of them. It goes on past failures. The tree is stopped
// here and not before: its unit refuses to be stopped for as long as its file exists.
func (s *UnitsStep) Undo(ctx context.Context, rec installer.Record) error {
	names := s.names()
	var kept []string
	if ok, err := rec.Kept(&kept); err == nil && ok {
		for _, name := range kept {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Reverse(names)
	var errs []error
	var ours []string
	for _, name := range names {
		switch mine, err := s.mine(name); {
		case err != nil:
			errs = append(errs, err)
		case mine:
			ours = append(ours, name)
		}
	}
	if len(ours) == 0 {
		return errors.Join(errs...)
	}
	errs = append(errs, s.Systemctl.Disable(ctx, ours...))
	for _, name := range ours {
		if err := s.FS.Remove(s.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove %s: %w", s.path(name), err))
		}
	}
	errs = append(errs, s.Systemctl.Reload(ctx), s.stopRest(ctx, ours))
	if s.Clean != nil {
		errs = append(errs, s.Clean(ctx))
	}
	return errors.Join(errs...)
}

// path is where a unit of that name lies: beside the others.
func (s *UnitsStep) path(name string) string {
	return unitDir(s.Units) + "/" + name
}

func unitDir(units []Unit) string {
	if len(units) == 0 {
		return "/etc/systemd/system"
	}
	return units[0].Path[:len(units[0].Path)-len(units[0].Name)-1]
}

// mine says whether the file is there and to be removed.
func (s *UnitsStep) mine(name string) (bool, error) {
	p := s.path(name)
	info, err := s.FS.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", p, err)
	}
	if !info.Mode.IsRegular() {
		return false, fmt.Errorf("remove %s: not a regular file, left as it is", p)
	}
	b, err := s.FS.ReadFile(p)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", p, err)
	}
	switch OriginOf(b) {
	case Ours:
		return true, nil
	case Edited:
		return false, fmt.Errorf("remove %s: edited since minhost wrote it, left as it is: look at it and remove it by hand", p)
	default:
		return false, fmt.Errorf("remove %s: not written by minhost, left as it is", p)
	}
}

// stopRest stops what still runs although its file is gone.
func (s *UnitsStep) stopRest(ctx context.Context, names []string) error {
	all, err := s.Systemctl.Show(ctx, names...)
	if err != nil {
		return err
	}
	var running, failed []string
	for _, name := range names {
		switch all[name].Active {
		case "active", "activating", "reloading", "deactivating":
			running = append(running, name)
		case "failed":
			failed = append(failed, name)
		}
	}
	return errors.Join(
		s.Systemctl.Stop(ctx, running...),
		s.Systemctl.verb(ctx, "reset-failed", failed),
	)
}
