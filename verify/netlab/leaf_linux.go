package netlab

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gominimal/minhost/linux/cgroup"
)

// Tree makes /sys/fs/cgroup/minhost with holder and boxes, and removes it at the end of the test when
// no leaf is left. Asking twice gives the same tree.
func Tree(t testing.TB) *cgroup.Tree {
	t.Helper()
	m, err := cgroup.FindMountHere()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := cgroup.Open(m, "minhost", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Ensure(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer tree.Close()
		var occupied *cgroup.OccupiedError
		if err := tree.Destroy(); err != nil && !errors.As(err, &occupied) {
			t.Error(err)
		}
	})
	return tree
}

// Leaf makes a leaf in that tree; at the end of the test its processes are killed and it is removed.
func Leaf(t testing.TB, name string) *cgroup.Leaf {
	t.Helper()
	leaf, err := Tree(t).Create(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer leaf.Close()
		ctx, cancel := context.WithTimeout(context.Background(), Patience(10*time.Second))
		defer cancel()
		if err := errors.Join(leaf.Kill(), leaf.WaitEmpty(ctx), leaf.Remove()); err != nil {
			t.Error(err)
		}
	})
	return leaf
}
