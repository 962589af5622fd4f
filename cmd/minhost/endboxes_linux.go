package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/gominimal/minhost/linux"
	"github.com/gominimal/minhost/linux/cgroup"
)

// endBoxes kills what lives in leaves, then waits for the helper to take the leases away: so names,
// verdicts and addresses go the ordinary way. Plans of live runners have no process and end with the
// helper.
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
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		live, err := env.liveBoxes(ctx)
		if err != nil || len(live) == 0 {
			return err
		}
	}
	return fmt.Errorf("boxes were killed, but the helper still lists them; look: minhost ls")
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
