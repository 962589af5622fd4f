package localhosttest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/belt"
	"github.com/gominimal/minhost/linux/cgroup"
	"github.com/gominimal/minhost/linux/localhost"
	"github.com/gominimal/minhost/verify/netlab"
)

// programCount is how many the set has.
func programCount(t *testing.T) int {
	ps, err := localhost.Programs(localhost.Config{NetnsCookie: 1, Level: 1})
	if err != nil {
		t.Fatal(err)
	}
	return len(ps)
}

func TestApplyTwice(t *testing.T) {
	var changes []string
	s := set(t, netlab.Tree(t), func(c string) error { changes = append(changes, c); return nil })
	want(t, s, installer.Absent)
	if err := s.Apply(); err != nil {
		t.Fatal(err)
	}
	want(t, s, installer.Satisfied)
	if len(changes) != programCount(t) || !strings.HasPrefix(changes[0], "localhost attach minhost_A") {
		t.Errorf("changes %q", changes)
	}
	changes = nil
	if err := s.Apply(); err != nil || len(changes) != 0 {
		t.Errorf("again: %q, %v", changes, err)
	}
	if err := errors.Join(s.Detach(), s.Detach()); err != nil {
		t.Error(err)
	}
	want(t, s, installer.Absent)
}

// A cut between any two changes, on the way in and out, is mended by the next.
func TestCut(t *testing.T) {
	tree := netlab.Tree(t)
	stop := errors.New("cut")
	whole := set(t, tree, nil)
	for n := range programCount(t) {
		left := n
		cut := set(t, tree, func(string) error {
			if left == 0 {
				return stop
			}
			left--
			return nil
		})
		if err := cut.Apply(); !errors.Is(err, stop) {
			t.Fatalf("cut %d: %v", n, err)
		}
		if n > 0 {
			want(t, whole, installer.Drifted)
		}
		if err := whole.Apply(); err != nil {
			t.Fatal(err)
		}
		want(t, whole, installer.Satisfied)
		left = n
		if err := cut.Detach(); !errors.Is(err, stop) {
			t.Fatalf("cut %d on the way out: %v", n, err)
		}
		left = 1 << 20
		if err := whole.Detach(); err != nil {
			t.Fatal(err)
		}
		want(t, whole, installer.Absent)
	}
}

// otherVersion is a set with other instructions; it acts nowhere.
func otherVersion(t testing.TB, tree *cgroup.Tree) *localhost.Set {
	return version(t, tree, func(c *localhost.Config) { c.NetnsCookie |= 1 << 60; c.Marks = localhost.Marks{Sent: 1, Admit: 1} })
}

// version is a set that is made from another config.
func version(t testing.TB, tree *cgroup.Tree, change func(*localhost.Config)) *localhost.Set {
	t.Helper()
	fd, err := tree.BoxesFD()
	if err != nil {
		t.Fatal(err)
	}
	cookie, err := belt.NetnsCookie()
	if err != nil {
		t.Fatal(err)
	}
	c := localhost.Fit(localhost.Config{NetnsCookie: cookie})
	change(&c)
	s, err := localhost.New(fd, rootFD(t, tree), tree.Level(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Another version is replaced in place, and what boxes have stays: the maps are the programs'.
func TestReplaceKeepsHomes(t *testing.T) {
	w := newTown(t)
	leaf := w.box(1, nil)
	other := otherVersion(t, w.tree)
	if r := want(t, other, installer.Drifted); !strings.Contains(r.Detail, "is attached, want minhost_A") {
		t.Error(r.Detail)
	}
	if err := other.Apply(); err != nil {
		t.Fatal(err)
	}
	want(t, w.set, installer.Drifted)
	h, err := other.Homes()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if got := h.List(); len(got) != 1 || got[0].Address != address(1) {
		t.Errorf("homes of the other version: %+v", got)
	}
	if err := w.set.Apply(); err != nil {
		t.Fatal(err)
	}
	netlab.EchoIn(t, netlab.Spawn{Leaf: leaf}, "tcp", "127.0.0.1:3000", 0)
	if o := (netlab.Dial{Network: "tcp", Address: "127.0.64.1:3000"}).Do(); !o.OK() {
		t.Error(o)
	}
}

// The process that attached and filled may end; the tree may go, and a new one finds the maps by the guard.
func TestOutlivesItsProcess(t *testing.T) {
	tree := netlab.Tree(t)
	s := set(t, tree, nil)
	netlab.InLeaf(t, netlab.NoLeaf, "settle", "127.0.64.9", "77")
	want(t, s, installer.Satisfied)
	h, err := s.Homes()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if got := h.List(); !slices.EqualFunc(got, []lease.Home{{Leaf: 77, Address: address(9), Own: true}}, same) {
		t.Errorf("%+v", got)
	}
	if err := tree.Destroy(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(localhost.Unguard(rootFD(t, tree), nil), tree.Ensure()); err != nil {
		t.Fatal(err)
	}
	again := set(t, tree, nil)
	want(t, again, installer.Absent)
}

func same(a, b lease.Home) bool { return a.Leaf == b.Leaf && a.Address == b.Address && a.Own == b.Own }

// settleChild attaches, puts one home, and ends.
func settleChild(args []string) int {
	var leaf uint64
	fmt.Sscan(args[1], &leaf)
	err := func() error {
		m, err := cgroup.FindMountHere()
		if err != nil {
			return err
		}
		tree, err := cgroup.Open(m, "minhost", nil)
		if err != nil {
			return err
		}
		s := set(childTB{}, tree, nil)
		if err := s.Apply(); err != nil {
			return err
		}
		h, err := s.Homes()
		if err != nil {
			return err
		}
		return h.Put(lease.Home{Leaf: leaf, Address: parse(args[0]), Own: true})
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestForeignProgramsStay(t *testing.T) {
	tree := netlab.Tree(t)
	fd, err := tree.BoxesFD()
	if err != nil {
		t.Fatal(err)
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "sd_bind", Type: ebpf.CGroupSockAddr, AttachType: ebpf.AttachCGroupInet4Bind, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	if err := link.RawAttachProgram(link.RawAttachProgramOptions{Target: fd, Program: prog, Attach: ebpf.AttachCGroupInet4Bind, Flags: 2}); err != nil {
		t.Fatal(err)
	}
	s := set(t, tree, nil)
	if r := want(t, s, installer.Absent); len(r.Foreign) != 1 || !strings.HasPrefix(r.Foreign[0], "sd_bind (program ") {
		t.Errorf("foreign %q", r.Foreign)
	}
	if err := errors.Join(s.Apply(), s.Detach()); err != nil {
		t.Fatal(err)
	}
	got, err := link.QueryPrograms(link.QueryOptions{Target: fd, Attach: ebpf.AttachCGroupInet4Bind})
	if err != nil || len(got.Programs) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.Homes(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("homes without programs: %v", err)
	}
}
