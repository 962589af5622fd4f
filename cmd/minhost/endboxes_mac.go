//go:build darwin || fakedarwin

package main

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/gominimal/minhost/darwin"
	"github.com/gominimal/minhost/darwin/boxes"
	"github.com/gominimal/minhost/darwin/procs"
	"github.com/gominimal/minhost/installer/host"
)

// macBoxes calls f for the notes of this boot, as root.
func macBoxes(l darwin.Layout, f func(*boxes.Tree, []string) error) error {
	files, err := host.OpenDisk("/", nil)
	if err != nil {
		return err
	}
	defer files.Close()
	if _, err := files.Lstat(l.Boxes); err != nil {
		return gone(err)
	}
	boot, err := (darwin.Boot{Run: host.Exec{}}).ID(context.Background())
	if err != nil {
		return err
	}
	table, err := procs.New()
	if err != nil {
		return err
	}
	tree := &boxes.Tree{FS: files, Dir: l.Boxes, BootID: boot, Table: table, Kill: func(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }}
	if err := tree.Prepare(); err != nil {
		return err
	}
	names, err := tree.List()
	if err != nil {
		return err
	}
	return f(tree, names)
}

// macLive names the boxes whose process lives.
func macLive(l darwin.Layout) (live []string, err error) {
	err = macBoxes(l, func(t *boxes.Tree, names []string) error {
		for _, name := range names {
			leaf, err := t.Open(name)
			if err != nil {
				continue
			}
			if is, err := leaf.Populated(); err != nil || is {
				live = append(live, name)
			}
		}
		return nil
	})
	return live, err
}

// macEndBoxes kills every box, and waits until they are gone.
func macEndBoxes(ctx context.Context, env *environment, l darwin.Layout) error {
	err := macBoxes(l, func(t *boxes.Tree, names []string) error {
		var errs []error
		for _, name := range names {
			leaf, err := t.Open(name)
			if err == nil {
				err = leaf.Kill()
			}
			if !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return err
	}
	return env.awaitNoBoxes(ctx)
}
