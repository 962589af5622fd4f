package main

import (
	"context"
	"errors"
	"io/fs"

	"github.com/gominimal/minhost/linux"
	"github.com/gominimal/minhost/linux/cgroup"
)

// endBoxes kills what lives in leaves, and waits until the boxes are gone. Plans of live runners have no process
// and end with the helper.
func endBoxes(ctx context.Context, env *environment) error {
	tree, err := (linux.Ground{Rel: treeRel(serviceManager()), Log: env.Log}).Tree()
	if err != nil {
		return nil // no cgroup2, no boxes
	}
	defer tree.Close()
	if _, err := tree.BoxesID(); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	names, err := tree.List()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := killLeaf(tree, name); err != nil {
			return err
		}
	}
	return env.awaitNoBoxes(ctx)
}

func killLeaf(t *cgroup.Tree, name string) error {
	l, err := t.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer l.Close()
	return l.Kill()
}
