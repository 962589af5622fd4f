package cgrouptest

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/linux/cgroup"
	"github.com/gominimal/minhost/verify/netlab"
)

func TestEnsureMakesAndKeeps(t *testing.T) {
	var changes []string
	tree := open(t, "minhost", func(c string) error { changes = append(changes, c); return nil })
	r, err := tree.Probe()
	if err != nil || r.Present || !slices.Equal(r.Missing, []string{"minhost", "minhost/holder", "minhost/boxes"}) {
		t.Fatalf("before: %+v, %v", r, err)
	}
	if _, err := tree.BoxesID(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("BoxesID before: %v", err)
	}
	old := syscall.Umask(0o077)
	err = tree.Ensure()
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Destroy()
	want := []string{"cgroup mkdir minhost", "cgroup mkdir minhost/holder", "cgroup mkdir minhost/boxes"}
	if !slices.Equal(changes, want) {
		t.Errorf("changes %q", changes)
	}
	r, err = tree.Probe()
	if err != nil || !r.Good() {
		t.Errorf("after: %+v, %v", r, err)
	}
	id, err := tree.BoxesID()
	if err != nil || id == 0 || id != r.BoxesID || id != inode(t, tree.Path()+"/boxes") {
		t.Errorf("id %d, %+v, %v", id, r, err)
	}
	for _, p := range []string{"", "/holder", "/boxes"} {
		info, err := os.Stat(tree.Path() + p)
		if err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", p, info.Mode(), err)
		}
	}
	changes = nil
	if err := tree.Ensure(); err != nil || len(changes) != 0 {
		t.Errorf("again: %q, %v", changes, err)
	}
	if again, _ := tree.BoxesID(); again != id {
		t.Errorf("id changed: %d, %d", id, again)
	}
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

// A cut between any two changes leaves a tree that the next Ensure completes.
func TestEnsureCut(t *testing.T) {
	stop := errors.New("cut")
	for n := range 3 {
		left := n
		tree := open(t, "minhost", func(string) error {
			if left == 0 {
				return stop
			}
			left--
			return nil
		})
		if err := tree.Ensure(); !errors.Is(err, stop) {
			t.Fatalf("cut %d: %v", n, err)
		}
		whole := open(t, "minhost", nil)
		if err := whole.Ensure(); err != nil {
			t.Errorf("after cut %d: %v", n, err)
		}
		if err := whole.Destroy(); err != nil {
			t.Error(err)
		}
	}
}

func TestLevel(t *testing.T) {
	if err := os.MkdirAll("/sys/fs/cgroup/a.slice", 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove("/sys/fs/cgroup/a.slice")
	for rel, want := range map[string]int{"minhost": 2, "a.slice/tree.service": 3} {
		tree := open(t, rel, nil)
		if err := tree.Ensure(); err != nil {
			t.Fatal(err)
		}
		if tree.Level() != want {
			t.Errorf("%s: level %d, want %d", rel, tree.Level(), want)
		}
		if err := tree.Destroy(); err != nil {
			t.Error(err)
		}
	}
	// The folders above are the service manager's: never made.
	if err := open(t, "not.there/tree.service", nil).Ensure(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("made folders above the root: %v", err)
	}
}

// Whatever somebody did to the tree is seen, named and not repaired (CASES B38, B40).
func TestProbeSeesDamage(t *testing.T) {
	control := "/sys/fs/cgroup/minhost/cgroup.subtree_control"
	for _, c := range []struct {
		name string
		harm func() error
		word string
	}{
		{"chowned boxes", func() error { return os.Chown("/sys/fs/cgroup/minhost/boxes", 1000, 0) }, "owner 1000:0"},
		{"chowned procs", func() error { return os.Chown("/sys/fs/cgroup/minhost/boxes/cgroup.procs", 1000, 0) }, "boxes/cgroup.procs: owner 1000"},
		{"group may write", func() error { return os.Chmod("/sys/fs/cgroup/minhost/boxes/cgroup.procs", 0o664) }, "0664"},
		{"threaded", func() error {
			return os.WriteFile("/sys/fs/cgroup/minhost/boxes/cgroup.type", []byte("threaded"), 0)
		}, "want \"domain\""},
		{"controller", func() error { return enable(control) }, "controllers enabled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := open(t, "minhost", nil)
			if err := tree.Ensure(); err != nil {
				t.Fatal(err)
			}
			defer tree.Destroy()
			if err := c.harm(); errors.Is(err, errNoController) {
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
			r, err := tree.Probe()
			if err != nil || !r.Present || r.Good() || !strings.Contains(strings.Join(r.Problems, "\n"), c.word) {
				t.Errorf("%+v, %v", r, err)
			}
			if err := tree.Ensure(); err == nil {
				t.Error("Ensure is content")
			}
		})
	}
}

var errNoController = errors.New("no controller is available to cgroup2 on this host")

func enable(control string) error {
	b, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	if err != nil {
		return err
	}
	names := strings.Fields(string(b))
	if len(names) == 0 {
		return errNoController
	}
	if err := os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+"+names[0]), 0); err != nil {
		return err
	}
	return os.WriteFile(control, []byte("+"+names[0]), 0)
}

// systemd removes empty directories of a unit that restarts.
func TestProbeSeesBoxesMadeAgain(t *testing.T) {
	tree := netlab.Tree(t)
	for _, do := range []func() error{
		func() error { return os.Remove(tree.Path() + "/boxes") },
		func() error { return os.Mkdir(tree.Path()+"/boxes", 0o755) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	r, err := tree.Probe()
	if err != nil || r.Good() || !strings.Contains(strings.Join(r.Problems, "\n"), "made again") {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := tree.Create("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("leaf in a removed directory: %v", err)
	}
	if err := tree.Ensure(); err != nil {
		t.Error(err)
	}
	if r, err := tree.Probe(); err != nil || !r.Good() {
		t.Errorf("after Ensure: %+v, %v", r, err)
	}
}

func TestDestroyOnlyEmpty(t *testing.T) {
	tree := open(t, "minhost", nil)
	if err := tree.Destroy(); err != nil {
		t.Errorf("nothing there: %v", err)
	}
	if err := tree.Ensure(); err != nil {
		t.Fatal(err)
	}
	leaf, err := tree.Create("web")
	if err != nil {
		t.Fatal(err)
	}
	defer leaf.Close()
	child := netlab.Start(t, netlab.Spawn{Leaf: netlab.NoLeaf}, "netlab-sleep")
	child.Line()
	if err := tree.EnterHolder(child.PID()); err != nil {
		t.Fatal(err)
	}
	var occupied *cgroup.OccupiedError
	if err := tree.Destroy(); !errors.As(err, &occupied) || !slices.Equal(occupied.Leaves, []string{"web"}) ||
		!slices.Equal(occupied.Pids, []int{child.PID()}) {
		t.Fatalf("%v", err)
	}
	if r, _ := tree.Probe(); !r.Good() {
		t.Errorf("a refused Destroy changed the tree: %+v", r)
	}
	child.Kill()
	if err := leaf.Remove(); err != nil {
		t.Error(err)
	}
	if err := tree.Destroy(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("/sys/fs/cgroup/minhost"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// CASES B06: a directory of another file system is not taken for a cgroup.
func TestOpenNotCgroup2(t *testing.T) {
	tree, err := cgroup.Open(cgroup.Mount{Point: "/run"}, "minhost", nil)
	if err == nil || !strings.Contains(err.Error(), "not a cgroup2") {
		t.Errorf("%v, %v", tree, err)
	}
}

// Nothing is followed out of the tree: neither a mount over a part of it...
func TestNoOtherMount(t *testing.T) {
	tree := netlab.Tree(t)
	if err := syscall.Mount("tmpfs", tree.Path()+"/boxes", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer syscall.Unmount(tree.Path()+"/boxes", syscall.MNT_DETACH)
	other := open(t, "minhost", nil)
	if id, err := other.BoxesID(); !errors.Is(err, syscall.EXDEV) {
		t.Errorf("%d, %v", id, err)
	}
}
