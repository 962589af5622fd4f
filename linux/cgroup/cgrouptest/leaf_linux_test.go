package cgrouptest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/linux/cgroup"
	"github.com/gominimal/minhost/verify/netlab"
)

func TestLeafLife(t *testing.T) {
	tree := netlab.Tree(t)
	if _, err := tree.Open("web"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open: %v", err)
	}
	leaf := netlab.Leaf(t, "web")
	if _, err := tree.Create("web"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("create twice: %v", err)
	}
	again, err := tree.Open("web")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.ID() != leaf.ID() || leaf.ID() != inode(t, leaf.Path()) {
		t.Errorf("ids %d, %d", leaf.ID(), again.ID())
	}
	if names, err := tree.List(); err != nil || !slices.Equal(names, []string{"web"}) {
		t.Errorf("list %q, %v", names, err)
	}
	for _, bad := range []string{"../x", "a/b", "cgroup.procs", "", "."} {
		if l, err := tree.Create(bad); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("create %q: %v, %v", bad, l, err)
		}
		if l, err := tree.Open(bad); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("open %q: %v, %v", bad, l, err)
		}
	}
	// An end that failed half way is tried again when the directory is gone.
	for range 2 {
		if err := leaf.Remove(); err != nil {
			t.Fatal(err)
		}
		ids, err := leaf.IDs()
		if live, lerr := leaf.Populated(); err != nil || lerr != nil || live || !slices.Equal(ids, []uint64{leaf.ID()}) {
			t.Errorf("a leaf that is gone: ids %v, %v; live %v, %v", ids, err, live, lerr)
		}
	}
}

// TestRemovedByOthers: a leaf that somebody else removed is an empty one.
func TestRemovedByOthers(t *testing.T) {
	leaf := netlab.Leaf(t, "a")
	if err := os.Remove(leaf.Path()); err != nil {
		t.Fatal(err)
	}
	if pids, err := leaf.Pids(); err != nil || len(pids) != 0 {
		t.Errorf("%v, %v", pids, err)
	}
	if err := leaf.WaitEmpty(t.Context()); err != nil {
		t.Error(err)
	}
}

// CASES B03: the same name is another leaf, and the old handle does nothing to it.
func TestSameNameOtherLeaf(t *testing.T) {
	tree := netlab.Tree(t)
	old := netlab.Leaf(t, "web")
	if err := old.Remove(); err != nil {
		t.Fatal(err)
	}
	if err := old.Remove(); err != nil {
		t.Errorf("removed twice: %v", err)
	}
	leaf := netlab.Leaf(t, "web")
	if leaf.ID() == old.ID() {
		t.Fatalf("same id %d", leaf.ID())
	}
	child := netlab.Start(t, netlab.Spawn{Leaf: leaf.FD()}, "netlab-sleep")
	child.Line()
	if err := old.Kill(); err != nil {
		t.Error(err)
	}
	if err := old.Move(os.Getpid()); err == nil {
		t.Error("moved into a removed leaf")
	}
	if busy, err := old.Populated(); busy || err != nil {
		t.Errorf("removed leaf populated: %v, %v", busy, err)
	}
	if err := old.WaitEmpty(t.Context()); err != nil {
		t.Error(err)
	}
	if err := old.Remove(); err != nil {
		t.Error(err)
	}
	if name, err := tree.LeafOf(child.PID()); name != "web" || err != nil {
		t.Errorf("child in %q, %v", name, err)
	}
	if busy, err := leaf.Populated(); !busy || err != nil {
		t.Errorf("the new leaf was harmed: %v, %v", busy, err)
	}
}

func TestMoveTakesThreads(t *testing.T) {
	tree := netlab.Tree(t)
	leaf := netlab.Leaf(t, "web")
	child := netlab.Start(t, netlab.Spawn{Leaf: netlab.NoLeaf}, "netlab-sleep")
	child.Line()
	if name, err := tree.LeafOf(child.PID()); name != "" || err != nil {
		t.Errorf("before: %q, %v", name, err)
	}
	if err := leaf.Move(child.PID()); err != nil {
		t.Fatal(err)
	}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", child.PID()))
	if err != nil || len(tasks) < 2 {
		t.Fatalf("%d threads, %v", len(tasks), err)
	}
	for _, task := range tasks {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/cgroup", child.PID(), task.Name()))
		if err != nil || !strings.Contains(string(b), "/minhost/boxes/web") {
			t.Errorf("thread %s: %s, %v", task.Name(), b, err)
		}
	}
	if got, err := leaf.Pids(); err != nil || !slices.Equal(got, []int{child.PID()}) {
		t.Errorf("pids %v, %v", got, err)
	}
	child.Kill()
	if err := leaf.Move(child.PID()); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("dead pid: %v", err)
	}
	// The kernel reads 0 as "me".
	if err := leaf.Move(0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("pid 0: %v", err)
	}
	if name, err := tree.LeafOf(os.Getpid()); name != "" || err != nil {
		t.Errorf("we are in %q, %v", name, err)
	}
}

func TestSubCgroups(t *testing.T) {
	tree := netlab.Tree(t)
	leaf := netlab.Leaf(t, "web")
	deep := leaf.Path() + "/a/b/c"
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(leaf.Path()+"/x (deleted)", 0o755); err != nil {
		t.Fatal(err)
	}
	child := netlab.Start(t, netlab.Spawn{Leaf: leaf.FD()}, "tree")
	grandchild, err := strconv.Atoi(child.Line())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(deep+"/cgroup.procs", []byte(strconv.Itoa(grandchild)), 0); err != nil {
		t.Fatal(err)
	}
	want := []int{child.PID(), grandchild}
	slices.Sort(want)
	if got, err := leaf.Pids(); err != nil || !slices.Equal(got, want) {
		t.Errorf("pids %v, %v; want %v", got, err, want)
	}
	if name, err := tree.LeafOf(grandchild); name != "web" || err != nil {
		t.Errorf("grandchild in %q, %v", name, err)
	}
	if err := leaf.Remove(); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("remove with live processes: %v", err)
	}
	if err := leaf.Kill(); err != nil {
		t.Fatal(err)
	}
	waitEmpty(t, leaf)
	if err := leaf.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(leaf.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func waitEmpty(t *testing.T, leaf *cgroup.Leaf) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := leaf.WaitEmpty(ctx); err != nil {
		t.Fatal(err)
	}
	if busy, err := leaf.Populated(); busy || err != nil {
		t.Fatalf("populated %v, %v after WaitEmpty", busy, err)
	}
}

func TestWaitEmpty(t *testing.T) {
	leaf := netlab.Leaf(t, "web")
	waitEmpty(t, leaf)
	child := netlab.Start(t, netlab.Spawn{Leaf: leaf.FD()}, "netlab-sleep")
	child.Line()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := leaf.WaitEmpty(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("live process: %v", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := leaf.WaitEmpty(stopped); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	done := make(chan time.Time, 1)
	go func() { waitEmptyErr(leaf); done <- time.Now() }()
	time.Sleep(30 * time.Millisecond)
	select {
	case <-done:
		t.Fatal("returned before the end of the process")
	default:
	}
	start := time.Now()
	child.Kill()
	if took := (<-done).Sub(start); took > time.Second {
		t.Errorf("noticed after %v", took)
	}
}

func waitEmptyErr(leaf *cgroup.Leaf) error {
	ctx, cancel := context.WithTimeout(context.Background(), netlab.Patience(20*time.Second))
	defer cancel()
	return leaf.WaitEmpty(ctx)
}

// More leaves than a user has inotify instances (128), and no thread for each.
func TestWaitEmptyMany(t *testing.T) {
	const n = 200
	var wg sync.WaitGroup
	errs := make(chan error, n)
	leaves := make([]*cgroup.Leaf, n)
	for i := range n {
		leaves[i] = netlab.Leaf(t, fmt.Sprintf("web%d", i))
		child := netlab.Start(t, netlab.Spawn{Leaf: leaves[i].FD()}, "netlab-sleep")
		wg.Go(func() { errs <- waitEmptyErr(leaves[i]) })
		t.Cleanup(child.Kill)
	}
	time.Sleep(100 * time.Millisecond)
	if threads, err := os.ReadDir("/proc/self/task"); err != nil || len(threads) > 60 {
		t.Errorf("%d threads, %v", len(threads), err)
	}
	if len(errs) != 0 {
		t.Fatalf("%d returned early: %v", len(errs), <-errs)
	}
	for _, l := range leaves {
		if err := l.Kill(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestKillForker(t *testing.T) {
	leaf := netlab.Leaf(t, "web")
	child := netlab.Start(t, netlab.Spawn{Leaf: leaf.FD()}, "forker")
	child.Line()
	time.Sleep(50 * time.Millisecond)
	if err := leaf.Kill(); err != nil {
		t.Fatal(err)
	}
	waitEmpty(t, leaf)
	time.Sleep(50 * time.Millisecond)
	if got, err := leaf.Pids(); len(got) != 0 || err != nil {
		t.Errorf("came back: %v, %v", got, err)
	}
}

func TestGateStopsEachChange(t *testing.T) {
	netlab.Leaf(t, "web")
	stop := errors.New("cut")
	tree := open(t, "minhost", func(string) error { return stop })
	leaf, err := tree.Open("web")
	if err != nil {
		t.Fatal(err)
	}
	defer leaf.Close()
	child := netlab.Start(t, netlab.Spawn{Leaf: leaf.FD()}, "netlab-sleep")
	child.Line()
	for name, do := range map[string]func() error{
		"create": func() error { _, err := tree.Create("b"); return err },
		"move":   func() error { return leaf.Move(os.Getpid()) },
		"holder": func() error { return tree.EnterHolder(os.Getpid()) },
		"kill":   leaf.Kill,
		"remove": leaf.Remove,
	} {
		if err := do(); !errors.Is(err, stop) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if names, _ := tree.List(); !slices.Equal(names, []string{"web"}) {
		t.Errorf("leaves %q", names)
	}
	if busy, _ := leaf.Populated(); !busy {
		t.Error("killed in spite of the gate")
	}
	if name, _ := tree.LeafOf(os.Getpid()); name != "" {
		t.Errorf("moved in spite of the gate: %q", name)
	}
}

// CASES B38, B39: with root-owned leaves an unprivileged process walks neither to a sibling nor out,
// with or without a cgroup namespace of its own.
func TestNoEscape(t *testing.T) {
	a, b := netlab.Leaf(t, "a"), netlab.Leaf(t, "b")
	targets := []string{
		b.Path() + "/cgroup.procs", "/sys/fs/cgroup/minhost/boxes/cgroup.procs", "/sys/fs/cgroup/cgroup.procs",
		a.Path() + "/cgroup.procs",
	}
	for _, flags := range []uintptr{0, syscall.CLONE_NEWCGROUP} {
		s := netlab.Spawn{Leaf: a.FD(), UID: 1000, Cloneflags: flags}
		lines := strings.Fields(netlab.Start(t, s, "escape", targets...).Stop())
		for i := range targets {
			if lines[i] != "true" {
				t.Errorf("flags %#x: wrote %s", flags, targets[i])
			}
		}
		if got := lines[len(targets)]; flags == 0 && got != "/minhost/boxes/a" {
			t.Errorf("now in %s", got)
		}
	}
	// The control: root may, so the paths above are the right ones.
	if got := netlab.Start(t, netlab.Spawn{Leaf: a.FD()}, "escape", targets[0]).Stop(); !strings.HasPrefix(got, "false\n/minhost/boxes/b") {
		t.Errorf("root: %q", got)
	}
}
