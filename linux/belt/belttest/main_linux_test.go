package belttest

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/linux/belt"
	"github.com/gominimal/minhost/linux/cgroup"
	"github.com/gominimal/minhost/linux/hook"
	"github.com/gominimal/minhost/verify/netlab"
)

func TestMain(m *testing.M) {
	os.Exit(netlab.Main(m, netlab.Children{
		"apply": applyChild, "options": optionsChild, "flood": floodChild, "inner": innerChild, "far": farChild,
		"unprivileged": unprivilegedChild, "marks": marksChild, "message": messageChild,
	}))
}

// hooks are where the three programs go, in the order of belt.Programs.
var hooks = []ebpf.AttachType{ebpf.AttachCGroupInetEgress, ebpf.AttachCGroupInetIngress, ebpf.AttachCGroupSetsockopt}

func config(t testing.TB) belt.Config {
	t.Helper()
	cookie, err := belt.NetnsCookie()
	if err != nil {
		t.Fatal(err)
	}
	return belt.Fit(belt.Default(cookie))
}

// older is the same belt as another version of the program would make it.
func older(t testing.TB) belt.Config {
	c := config(t)
	c.Lease, c.Admit, c.Foreign, c.Host = 0x10000000, 0x04000000, 0x02000000, 0x20000000
	c.NetnsCookie |= 1 << 60 // so that setsockopt differs too; acts nowhere
	return c
}

func boxes(t testing.TB, tree *cgroup.Tree) int {
	t.Helper()
	fd, err := tree.BoxesFD()
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func onTree(t testing.TB, tree *cgroup.Tree, c belt.Config, gate func(string) error) *belt.Belt {
	t.Helper()
	b, err := belt.New(boxes(t, tree), c, gate)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// worn makes a leaf under a belt.
func worn(t testing.TB) (*cgroup.Leaf, *belt.Belt) {
	t.Helper()
	tree := netlab.Tree(t)
	b := onTree(t, tree, config(t), nil)
	if err := b.Apply(); err != nil {
		t.Fatal(err)
	}
	return netlab.Leaf(t, "web"), b
}

func want(t testing.TB, b *belt.Belt, state installer.State) hook.Report {
	t.Helper()
	r, err := b.Probe()
	if err != nil || r.State != state {
		t.Errorf("%+v, %v; want %s", r, err, state)
	}
	return r
}

// ids lists the programs on one hook of boxes.
func ids(t testing.TB, fd int, hook ebpf.AttachType) []ebpf.ProgramID {
	t.Helper()
	got, err := link.QueryPrograms(link.QueryOptions{Target: fd, Attach: hook})
	if err != nil {
		t.Fatal(err)
	}
	var out []ebpf.ProgramID
	for _, p := range got.Programs {
		out = append(out, p.ID)
	}
	return out
}

// foreign attaches a program of somebody else that lets everything through.
func foreign(t testing.TB, fd int, name string, hook ebpf.AttachType) ebpf.ProgramID {
	t.Helper()
	kind := ebpf.CGroupSKB
	if hook == ebpf.AttachCGroupSetsockopt {
		kind = ebpf.CGroupSockopt
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: name, Type: kind, AttachType: hook, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	if err := link.RawAttachProgram(link.RawAttachProgramOptions{Target: fd, Program: prog, Attach: hook, Flags: 2}); err != nil {
		t.Fatal(err)
	}
	info, err := prog.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	return id
}

// here is the belt on the tree of the test, for a child.
func here() (*belt.Belt, error) {
	m, err := cgroup.FindMountHere()
	if err != nil {
		return nil, err
	}
	tree, err := cgroup.Open(m, "minhost", nil)
	if err != nil {
		return nil, err
	}
	fd, err := tree.BoxesFD()
	if err != nil {
		return nil, err
	}
	cookie, err := belt.NetnsCookie()
	if err != nil {
		return nil, err
	}
	return belt.New(fd, belt.Fit(belt.Default(cookie)), nil)
}

// applyChild is a loader that ends at once.
func applyChild([]string) int {
	b, err := here()
	if err == nil {
		err = b.Apply()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// unprivilegedChild prints what the belt says to somebody who is not root, a line each.
func unprivilegedChild([]string) int {
	b, err := here()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	r, err := b.Probe()
	fmt.Println(r.State, err)
	fmt.Println(b.Apply())
	return 0
}

// floodChild sends datagrams to a port for some milliseconds and prints how many it tried. Refusals do
// not stop it.
func floodChild(args []string) int {
	ms, err := strconv.Atoi(args[1])
	if err != nil {
		return 2
	}
	port, err := strconv.Atoi(args[0])
	if err != nil {
		return 2
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return 1
	}
	fmt.Println("ready")
	to := &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	n := 0
	for end := time.Now().Add(time.Duration(ms) * time.Millisecond); time.Now().Before(end); n++ {
		if err := unix.Sendto(fd, []byte("x"), 0, to); err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ECONNREFUSED) {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	fmt.Println(n)
	return 0
}
