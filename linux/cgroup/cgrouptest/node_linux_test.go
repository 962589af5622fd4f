package cgrouptest

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/linux/cgroup"
	"github.com/gominimal/minhost/verify/netlab"
)

// TestRunners: places of runners are made at need, kept, told by their ids, in no leaf, in the way of an undo no more
// than any process, and gone behind it: who lived there lives on.
func TestRunners(t *testing.T) {
	tree := netlab.Tree(t)
	if _, err := tree.NodeID(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there before anybody asked: %v", err)
	}
	node, err := tree.MakeRunner(1000)
	if err != nil {
		t.Fatal(err)
	}
	again, err := tree.MakeRunner(1000)
	got, nerr := tree.NodeID()
	if err := errors.Join(err, nerr); err != nil || again != node || got != node {
		t.Errorf("ids %d, %d, %d, %v", node, again, got, err)
	}
	if _, err := tree.MakeRunner(7); err != nil {
		t.Error(err)
	}
	p := netlab.Start(t, netlab.Spawn{Leaf: netlab.NoLeaf}, "netlab-sleep")
	p.Line()
	for range 2 {
		if err := tree.MoveRunner(1000, p.PID()); err != nil {
			t.Fatal(err)
		}
	}
	if group, err := tree.GroupOf(p.PID()); err != nil || !strings.HasSuffix(group, "minhost/node/1000") {
		t.Errorf("in %s, %v", group, err)
	}
	if leaf, err := tree.LeafOf(p.PID()); leaf != "" || err != nil {
		t.Errorf("in the leaf %q, %v", leaf, err)
	}
	if err := tree.MoveRunner(1000, 1<<22-1); !errors.Is(err, unix.ESRCH) {
		t.Errorf("a process that is not: %v", err)
	}
	accounts, err := tree.Runners()
	if err != nil || len(accounts) != 2 {
		t.Errorf("%v, %v", accounts, err)
	}
	for id, uid := range accounts {
		var st unix.Stat_t
		if err := unix.Stat(tree.Path()+"/node/1000", &st); err != nil || (id == st.Ino) != (uid == 1000) {
			t.Errorf("%d of %d, %v", id, uid, err)
		}
	}
	var occupied *cgroup.OccupiedError
	if err := tree.Destroy(); !errors.As(err, &occupied) {
		t.Errorf("destroyed under a runner: %v", err)
	}
	if err := tree.RemoveRunners(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tree.Path() + "/node"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left: %v", err)
	}
	if group, err := tree.GroupOf(p.PID()); err != nil || group != "/" {
		t.Errorf("the runner is in %q, %v", group, err)
	}
	if err := tree.RemoveRunners(); err != nil {
		t.Errorf("twice: %v", err)
	}
}
