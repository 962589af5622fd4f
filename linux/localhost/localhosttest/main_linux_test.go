package localhosttest

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/belt"
	"github.com/gominimal/minhost/linux/cgroup"
	"github.com/gominimal/minhost/linux/hook"
	"github.com/gominimal/minhost/linux/localhost"
	"github.com/gominimal/minhost/verify/netlab"
)

func TestMain(m *testing.M) {
	os.Exit(netlab.Main(m, netlab.Children{
		"calls": callsChild, "settle": settleChild, "actor": actorChild, "range": rangeChild,
		"get": getChild, "multipath": multipathChild, "http": httpChild, "without gap": gapChild,
	}))
}

// rootFD opens the root of the hierarchy until the end of the test.
func rootFD(t testing.TB, tree *cgroup.Tree) int {
	t.Helper()
	f, err := os.Open(tree.Mount().Point)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return int(f.Fd())
}

// set is the programs on the tree of the test. They come off at its end: the root outlives the tree.
func set(t testing.TB, tree *cgroup.Tree, gate host.Gate) *localhost.Set {
	t.Helper()
	fd, err := tree.BoxesFD()
	if err == nil {
		fd, err = unix.Dup(fd) // a tree that is made again closes its own
	}
	if err != nil {
		t.Fatal(err)
	}
	cookie, err := belt.NetnsCookie()
	if err != nil {
		t.Fatal(err)
	}
	s, err := localhost.New(fd, rootFD(t, tree), tree.Level(), localhost.Fit(localhost.Config{NetnsCookie: cookie}), gate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Detach(), unix.Close(fd)); err != nil {
			t.Error(err)
		}
	})
	return s
}

// childTB lets a child use the helpers that want a test.
type childTB struct{ testing.TB }

func (childTB) Helper()        {}
func (childTB) Cleanup(func()) {}
func (childTB) Fatal(a ...any) {
	fmt.Fprintln(os.Stderr, a...)
	os.Exit(1)
}

func parse(s string) netip.Addr { return netip.MustParseAddr(s) }

func want(t testing.TB, s *localhost.Set, state installer.State) hook.Report {
	t.Helper()
	r, err := s.Probe()
	if err != nil || r.State != state {
		t.Errorf("%+v, %v; want %s", r, err, state)
	}
	return r
}

// town is boxes with homes under the programs, without a table: only the rewriting is judged.
type town struct {
	t     testing.TB
	tree  *cgroup.Tree
	set   *localhost.Set
	homes *localhost.Homes
	leafs map[string]*cgroup.Leaf
}

func newTown(t testing.TB) *town {
	t.Helper()
	tree := netlab.Tree(t)
	s := set(t, tree, nil)
	if err := s.Apply(); err != nil {
		t.Fatal(err)
	}
	h, err := s.Homes()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return &town{t, tree, s, h, map[string]*cgroup.Leaf{}}
}

// box makes a leaf with a home at 127.0.64.n; change may be nil. It returns the leaf's descriptor.
func (w *town) box(n byte, change func(*lease.Home)) int {
	w.t.Helper()
	name := fmt.Sprintf("b%d", n)
	leaf := w.leafs[name]
	if leaf == nil {
		leaf = netlab.Leaf(w.t, name)
		w.leafs[name] = leaf
	}
	home := lease.Home{Leaf: leaf.ID(), Address: address(n), Own: true, UDPWildcards: true}
	if change != nil {
		change(&home)
	}
	if err := w.homes.Put(home); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := w.homes.Delete(home); err != nil {
			w.t.Error(err)
		}
	})
	return leaf.FD()
}

func address(n byte) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 64, n}) }
