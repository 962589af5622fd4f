package cgrouptest

import (
	"os"
	"testing"

	"github.com/gominimal/minhost/verify/netlab"
)

// TestExpectMoveChangesNothing: whoever expects a move stays where it is, with every thread, wherever that is; and the
// move itself does what it does without.
func TestExpectMoveChangesNothing(t *testing.T) {
	tree := netlab.Tree(t)
	leaf := netlab.Leaf(t, "web")
	me := os.Getpid()
	before, err := tree.GroupOf(me)
	if err != nil {
		t.Fatal(err)
	}
	stays := func(where string) {
		t.Helper()
		if err := tree.ExpectMove(); err != nil {
			t.Error(err)
		}
		if now, err := tree.GroupOf(me); err != nil || now != where {
			t.Errorf("in %q, %v; was in %q", now, err, where)
		}
	}
	stays(before)
	if err := tree.EnterHolder(me); err != nil {
		t.Fatal(err)
	}
	holder, err := tree.GroupOf(me)
	if err != nil || holder == before {
		t.Fatalf("in %q, %v", holder, err)
	}
	stays(holder)
	if err := tree.Restore(me, before); err != nil {
		t.Fatal(err)
	}
	child := netlab.Start(t, netlab.Spawn{Leaf: netlab.NoLeaf}, "tree")
	child.Line()
	stays(before)
	if err := leaf.Move(child.PID()); err != nil {
		t.Fatal(err)
	}
	if in, err := tree.LeafOf(child.PID()); err != nil || in != "web" {
		t.Errorf("in %q, %v", in, err)
	}
}
