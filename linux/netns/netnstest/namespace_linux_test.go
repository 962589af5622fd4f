package netnstest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/linux/errand"
	"github.com/gominimal/minhost/linux/netns"
	"github.com/gominimal/minhost/verify/netlab"
)

// TestMain makes the test binary the program that runs errands, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == errand.Verb {
		table := errand.Table{netns.PrepareName: netns.PrepareChild, netns.RemoveName: netns.RemoveChild}
		if err := errand.Child(os.Args[2:], table); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(netlab.Main(m, netlab.Children{"stray": strayChild}))
}

// strayChild has a thread in another namespace than its others.
func strayChild([]string) int {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- unix.Unshare(unix.CLONE_NEWNET)
		select {}
	}()
	if err := <-done; err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	return 0
}

// process starts one; flags are its namespaces.
func process(t testing.TB, flags uintptr) int {
	t.Helper()
	p := netlab.Start(t, netlab.Spawn{Leaf: netlab.NoLeaf, Cloneflags: flags}, "netlab-sleep")
	p.Line()
	return p.PID()
}

func of(t testing.TB, pid int) *netns.Namespace {
	t.Helper()
	n, err := netns.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// inside runs a program in a namespace and returns what it printed.
func inside(t testing.TB, pid int, args ...string) string {
	t.Helper()
	out, err := exec.Command("/usr/bin/nsenter", append([]string{"--net=/proc/" + strconv.Itoa(pid) + "/ns/net"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestIdentity: whose namespace is whose, and who is in it.
func TestIdentity(t *testing.T) {
	host, err := netns.Host()
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	here, alone := process(t, 0), process(t, syscall.CLONE_NEWNET)
	n := of(t, alone)
	if of(t, here).ID() != host.ID() || n.ID() == host.ID() || of(t, alone).ID() != n.ID() {
		t.Error("namespaces are taken for each other")
	}
	if users, err := n.Users(); err != nil || !slices.Equal(users, []int{alone}) {
		t.Errorf("users %v, %v; want %d", users, err, alone)
	}
	if users, err := host.Users(); err != nil || !slices.Contains(users, here) || !slices.Contains(users, os.Getpid()) || slices.Contains(users, alone) {
		t.Errorf("users of the host's: %v, %v", users, err)
	}
	stray := netlab.Start(t, netlab.Spawn{Leaf: netlab.NoLeaf, Cloneflags: syscall.CLONE_NEWNET}, "stray")
	stray.Line()
	if _, err := netns.Of(stray.PID()); !errors.Is(err, netns.ErrThreads) {
		t.Errorf("a process with a thread elsewhere: %v", err)
	}
	stray.Kill()
	if _, err := netns.Of(stray.PID()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a process that has ended: %v", err)
	}
}

// TestUsersByThread: one thread of a process is enough to be a user.
func TestUsersByThread(t *testing.T) {
	alone := process(t, syscall.CLONE_NEWNET)
	n := of(t, alone)
	done, leave := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // ends with the goroutine
		done <- unix.Setns(int(n.File().Fd()), unix.CLONE_NEWNET)
		<-leave
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if users, err := n.Users(); err != nil || !slices.Contains(users, os.Getpid()) {
		t.Errorf("users %v, %v; want this process too", users, err)
	}
	close(leave)
}

var tap = netns.Tap{Name: "tap0", Address: netip.MustParsePrefix("10.0.2.15/24"), Gateway: netip.MustParseAddr("10.0.2.2"), MTU: 1400}

// TestPrepare: loopback comes up, the tap is as planned, IPv6 too; what is not empty is refused.
func TestPrepare(t *testing.T) {
	none := process(t, syscall.CLONE_NEWNET)
	if f, err := of(t, none).Prepare(t.Context(), nil); err != nil || f != nil {
		t.Fatalf("without a tap: %v, %v", f, err)
	}
	if out := inside(t, none, "/usr/sbin/ip", "-o", "link"); !strings.Contains(out, "LOOPBACK,UP") || strings.Contains(out, "tap") {
		t.Errorf("without a tap:\n%s", out)
	}
	own := process(t, syscall.CLONE_NEWNET)
	n := of(t, own)
	f := prepare(t, n, tap)
	out := inside(t, own, "/usr/sbin/ip", "address") + inside(t, own, "/usr/sbin/ip", "route")
	for _, want := range []string{"inet 10.0.2.15/24 ", "mtu 1400", "default via 10.0.2.2 dev tap0"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q:\n%s", want, out)
		}
	}
	if _, err := n.Prepare(t.Context(), nil); !errors.Is(err, netns.ErrNotEmpty) || !strings.Contains(err.Error(), "tap0") {
		t.Errorf("a namespace with a tap: %v", err)
	}
	f.Close() // the last descriptor: the tap goes
	if _, err := n.Prepare(t.Context(), nil); err != nil {
		t.Errorf("behind the end of the tap: %v", err)
	}
	six := netns.Tap{Name: "six", Address: netip.MustParsePrefix("fd00::2/64"), Gateway: netip.MustParseAddr("fd00::1"), MTU: 1500}
	prepare(t, n, six)
	out = inside(t, own, "/usr/sbin/ip", "address") + inside(t, own, "/usr/sbin/ip", "-6", "route")
	if !strings.Contains(out, "default via fd00::1 dev six") || !strings.Contains(out, "inet6 fd00::2/64") || strings.Contains(out, "fd00::2/64 scope global tentative") {
		t.Errorf("IPv6:\n%s", out)
	}
}

func prepare(t *testing.T, n *netns.Namespace, tap netns.Tap) *os.File {
	t.Helper()
	f, err := n.Prepare(t.Context(), &tap)
	if err != nil || f == nil {
		t.Fatalf("prepare: %v, %v", f, err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestRemoveTaps: the tap goes under any name, although somebody holds its descriptor, and other devices stay.
func TestRemoveTaps(t *testing.T) {
	own := process(t, syscall.CLONE_NEWNET)
	n := of(t, own)
	f := prepare(t, n, tap)
	inside(t, own, "/usr/sbin/ip", "link", "set", "tap0", "down")
	inside(t, own, "/usr/sbin/ip", "link", "set", "tap0", "name", "mine")
	inside(t, own, "/usr/sbin/ip", "link", "add", "tap0", "type", "veth", "peer", "name", "other")
	for range 2 { // the second time there is none
		if err := n.RemoveTaps(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if out := inside(t, own, "/usr/sbin/ip", "-o", "link"); strings.Contains(out, "mine") || !strings.Contains(out, "tap0") {
		t.Errorf("what is left:\n%s", out)
	}
	if _, err := f.Read(make([]byte, 2000)); !errors.Is(err, unix.EBADFD) {
		t.Errorf("the descriptor: %v; want EBADFD", err)
	}
}

// TestNobodyStays: an errand leaves neither a process nor a thread nor a descriptor anywhere.
func TestNobodyStays(t *testing.T) {
	n := of(t, process(t, syscall.CLONE_NEWNET))
	before, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := n.RemoveTaps(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if users, err := n.Users(); err != nil || len(users) != 1 {
		t.Errorf("users %v, %v", users, err)
	}
	if after, err := os.ReadDir("/proc/self/fd"); err != nil || len(after) > len(before) {
		t.Errorf("%d descriptors, then %d", len(before), len(after))
	}
	if _, err := errand.Run(t.Context(), errand.Spec{Name: "nothing"}); err == nil || !strings.Contains(err.Error(), `no errand "nothing"`) {
		t.Errorf("an errand that is not there: %v", err)
	}
}

// BenchmarkUsers is what an attach of an isolated box pays for the look at every thread of the host.
func BenchmarkUsers(b *testing.B) {
	n := of(b, process(b, syscall.CLONE_NEWNET))
	for b.Loop() {
		if _, err := n.Users(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkErrand is the shortest errand.
func BenchmarkErrand(b *testing.B) {
	n := of(b, process(b, syscall.CLONE_NEWNET))
	for b.Loop() {
		if err := n.RemoveTaps(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
