package proctest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/linux/proc"
	"github.com/gominimal/minhost/verify/netlab"
)

func TestMain(m *testing.M) {
	os.Exit(netlab.Main(m, netlab.Children{"hold": holdChild, "parent": parentChild, "reaper": reaperChild}))
}

// holdChild opens what its arguments name, says so and waits for the end of its input.
func holdChild(args []string) int {
	for _, what := range args {
		fd, err := open(what)
		if err != nil {
			fmt.Fprintln(os.Stderr, what, err)
			return 1
		}
		fmt.Println(fd)
	}
	io.Copy(io.Discard, os.Stdin)
	return 0
}

func open(what string) (int, error) {
	switch what {
	case "unix":
		return unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	case "netlink":
		return unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	case "inet":
		return unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	case "inet6":
		return unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM, 0)
	case "packet":
		return unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	case "ring":
		var params [120]byte // struct io_uring_params
		fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
		if errno != 0 {
			return -1, errno
		}
		return int(fd), nil
	case "thread":
		return openInThread()
	}
	return -1, os.ErrInvalid
}

// openInThread makes a socket that only one thread, with a table of its own, has.
func openInThread() (int, error) {
	type result struct {
		fd  int
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			// The leader's table is the one that is looked at: take another thread.
			fd, err := openInThread()
			done <- result{fd, err}
			select {}
		}
		if err := unix.Unshare(unix.CLONE_FILES); err != nil {
			done <- result{-1, err}
			return
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		done <- result{fd, err}
		select {}
	}()
	r := <-done
	return r.fd, r.err
}

// parentChild has one child and prints its pid.
func parentChild([]string) int {
	cmd := exec.Command("/bin/sleep", "60")
	if err := cmd.Start(); err != nil {
		return 1
	}
	fmt.Println(cmd.Process.Pid)
	io.Copy(io.Discard, os.Stdin)
	cmd.Process.Kill()
	cmd.Wait()
	return 0
}

func hold(t *testing.T, pid int) *proc.Process {
	t.Helper()
	p, err := proc.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func start(t *testing.T, s netlab.Spawn, name string, args ...string) *netlab.Proc {
	s.Leaf = netlab.NoLeaf
	return netlab.Start(t, s, name, args...)
}

func TestIdentity(t *testing.T) {
	child := start(t, netlab.Spawn{UID: 1000}, "netlab-sleep")
	child.Line()
	p := hold(t, child.PID())
	if u, err := p.UIDs(); err != nil || !u.All(1000) || u.All(0) {
		t.Errorf("uids %v, %v", u, err)
	}
	if same, err := p.SamePIDNamespace(); err != nil || !same {
		t.Errorf("same namespace: %v, %v", same, err)
	}
	a, err := p.StartTime()
	if err != nil || a == 0 {
		t.Errorf("start %d, %v", a, err)
	}
	if own, err := hold(t, os.Getpid()).StartTime(); err != nil || own > a {
		t.Errorf("we started at %d, the child at %d, %v", own, a, err)
	}
	other := start(t, netlab.Spawn{Cloneflags: syscall.CLONE_NEWPID}, "netlab-sleep")
	other.Line()
	if same, err := hold(t, other.PID()).SamePIDNamespace(); err != nil || same {
		t.Errorf("other namespace: %v, %v", same, err)
	}
}

func TestGone(t *testing.T) {
	child := start(t, netlab.Spawn{}, "netlab-sleep")
	child.Line()
	p := hold(t, child.PID())
	if alive, err := p.Alive(); err != nil || !alive {
		t.Fatalf("alive %v, %v", alive, err)
	}
	// A zombie has ended, though its number is still taken.
	if err := p.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for alive := true; alive; alive, _ = p.Alive() {
		if time.Now().After(deadline) {
			t.Fatal("still alive after SIGKILL")
		}
	}
	if _, err := proc.Open(child.PID()); !errors.Is(err, proc.ErrGone) {
		t.Errorf("open a zombie: %v", err)
	}
	child.Kill()
	for name, ask := range map[string]func() error{
		"uids":      func() error { _, err := p.UIDs(); return err },
		"namespace": func() error { _, err := p.SamePIDNamespace(); return err },
		"start":     func() error { _, err := p.StartTime(); return err },
		"children":  func() error { _, err := p.Children(); return err },
		"holdings":  func() error { _, err := p.Holdings(); return err },
		"signal":    func() error { return p.Signal(0) },
		"open":      func() error { _, err := proc.Open(child.PID()); return err },
		"pid 0":     func() error { _, err := proc.Open(0); return err },
	} {
		if err := ask(); !errors.Is(err, proc.ErrGone) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFromPidfd(t *testing.T) {
	child := start(t, netlab.Spawn{}, "netlab-sleep")
	child.Line()
	fd, err := unix.PidfdOpen(child.PID(), 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := proc.FromPidfd(os.NewFile(uintptr(fd), "pidfd"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.PID() != child.PID() {
		t.Errorf("pid %d, want %d", p.PID(), child.PID())
	}
	null, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := proc.FromPidfd(null); err == nil {
		t.Errorf("a file that is no pidfd: %v", p)
	}
	fd, err = unix.PidfdOpen(child.PID(), 0)
	if err != nil {
		t.Fatal(err)
	}
	child.Kill()
	if p, err := proc.FromPidfd(os.NewFile(uintptr(fd), "pidfd")); !errors.Is(err, proc.ErrGone) {
		t.Errorf("a dead process: %v, %v", p, err)
	}
}

func TestChildren(t *testing.T) {
	none := start(t, netlab.Spawn{}, "netlab-sleep")
	none.Line()
	if got, err := hold(t, none.PID()).Children(); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	one := start(t, netlab.Spawn{}, "parent")
	want, err := strconv.Atoi(one.Line())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := hold(t, one.PID()).Children(); err != nil || !slices.Equal(got, []int{want}) {
		t.Errorf("%v, %v; want %d", got, err, want)
	}
}

func TestHoldings(t *testing.T) {
	for what, refused := range map[string]string{
		"unix": "", "netlink": "",
		"inet":   "descriptor %s: socket (IPv4)",
		"inet6":  "descriptor %s: socket (IPv6)",
		"packet": "descriptor %s: socket (packet)",
		"ring":   "descriptor %s: io_uring",
		"thread": "descriptor %s: socket (unknown family)",
	} {
		t.Run(what, func(t *testing.T) {
			if what == "ring" {
				if fd, err := open(what); err != nil {
					t.Skipf("io_uring: %v", err)
				} else {
					unix.Close(fd)
				}
			}
			child := start(t, netlab.Spawn{}, "hold", what)
			fd := child.Line()
			got, err := hold(t, child.PID()).Holdings()
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(got, func(h proc.Holding) bool { return strconv.Itoa(h.FD) == fd })
			if at < 0 {
				t.Fatalf("descriptor %s is not in %v", fd, got)
			}
			if refused == "" {
				if bad := got.Refused(); len(bad) != 0 {
					t.Errorf("refused %v", bad)
				}
				return
			}
			want := strings.ReplaceAll(refused, "%s", fd)
			if bad := got.Refused(); len(bad) != 1 || bad[0].String() != want {
				t.Errorf("refused %v, want %q", bad, want)
			}
		})
	}
	// Nothing but files and pipes: nothing to report.
	child := start(t, netlab.Spawn{}, "hold")
	if got, err := hold(t, child.PID()).Holdings(); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}
