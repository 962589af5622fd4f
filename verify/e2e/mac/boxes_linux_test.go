package mac

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/fakedarwin"
)

// box is a running `minhost run`.
type box struct {
	cmd *exec.Cmd
	out *bytes.Buffer
}

// run starts a box of ada's that sleeps, and waits for its name.
func (m *mac) run(name string, args ...string) *box {
	m.t.Helper()
	b := m.start(name, args...)
	m.until("box "+name+" is attached: "+b.out.String(), func() bool { return m.lease(name).State == "attached" })
	return b
}

func (m *mac) start(name string, args ...string) *box {
	m.t.Helper()
	b := &box{m.command(context.Background(), fakedarwin.Ada, program, append([]string{"run", "--name", name}, args...)...), &bytes.Buffer{}}
	b.cmd.Stdout, b.cmd.Stderr = b.out, b.out
	if err := b.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { b.cmd.Process.Kill(); b.cmd.Wait() })
	return b
}

var sleep = []string{"--", "/bin/sleep", "600"}

type leaseInfo struct {
	Name, Address, State, Enforcement string
	Processes                         int
}

func (m *mac) leases() []leaseInfo {
	m.t.Helper()
	r := m.ada("ls", "--json")
	var out struct{ Leases []leaseInfo }
	if err := json.Unmarshal([]byte(r.stdout), &out); err != nil {
		m.t.Fatalf("%v: %v", err, r)
	}
	return out.Leases
}

func (m *mac) lease(name string) leaseInfo {
	for _, l := range m.leases() {
		if l.Name == name {
			return l
		}
	}
	return leaseInfo{}
}

// TestBox: an address, a name that the system finds though it was looked up before the box existed, and
// nothing left when the process has ended.
func TestBox(t *testing.T) {
	m := newMac(t, nil)
	m.install()
	if a := m.Lookup("web.min.internal"); a.IsValid() {
		t.Fatalf("web is %v before it exists", a)
	}
	b := m.run("web", sleep...)
	web := m.lease("web")
	if web.Processes != 1 || web.Enforcement != "none" {
		t.Errorf("%+v", web)
	}
	addr := netip.MustParseAddr(web.Address)
	m.until("the system finds web: mDNSResponder was told to forget", func() bool { return m.Lookup("web.min.internal") == addr })
	two := m.run("api", sleep...)
	for _, at := range []string{web.Address, m.lease("api").Address} {
		l, err := net.Listen("tcp", at+":3000") // both boxes have port 3000
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	b.cmd.Process.Kill()
	b.cmd.Wait()
	two.cmd.Process.Signal(syscall.SIGTERM)
	m.until("no lease", func() bool { return len(m.leases()) == 0 })
	for _, dir := range []string{"boxes", "leases"} {
		if left, _ := filepath.Glob(filepath.Join(m.Root, "Library/Application Support/minhost/run", dir, "*.*")); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	}
	if m.Stalls() > 0 {
		t.Errorf("%d stalls", m.Stalls())
	}
}

// TestHangups: many names in a moment are few signals, and the last name is found all the same.
func TestHangups(t *testing.T) {
	m := newMac(t, nil)
	m.install()
	names := []string{"a1", "a2", "a3", "a4", "a5", "a6"}
	for _, n := range names {
		m.Lookup(n + ".min.internal")
	}
	for _, n := range names {
		m.start(n, sleep...)
	}
	for _, n := range names {
		m.until(n, func() bool { return m.Lookup(n + ".min.internal").IsValid() })
	}
	all := m.Hangups()
	for i := 1; i < len(all); i++ {
		// The first one is of finalize-install.
		if gap := all[i].Sub(all[i-1]); i > 1 && gap < 990*time.Millisecond {
			t.Errorf("two signals within %v", gap)
		}
	}
	if len(all) < 2 {
		t.Errorf("%d signals", len(all))
	}
}

// TestNoVerdict: a box that must be confined is refused with the cause, and recorded where its runner
// takes it unenforced.
func TestNoVerdict(t *testing.T) {
	m := newMac(t, nil)
	m.install()
	m.want(125, m.ada("run", "--name", "web", "--egress", "deny", "--no-strict", "--", "/bin/true"), "cannot confine a box", "network extension")
	m.run("web", append([]string{"--egress", "deny", "--no-strict", "--allow-unenforced"}, sleep...)...)
	if l := m.lease("web"); l.Enforcement != "none" {
		t.Errorf("%+v", l)
	}
	m.want(0, m.ada("status"), "none")
}

// TestRangeUnavailable: while one address of the range is missing no box gets any; one without a name
// needs none.
func TestRangeUnavailable(t *testing.T) {
	m := newMac(t, nil)
	m.install()
	m.want(0, m.as(0, "/sbin/ifconfig", "lo0", "-alias", "127.0.64.200"))
	time.Sleep(1100 * time.Millisecond) // a look at the range is believed for a second
	m.want(125, m.ada("run", "--name", "web", "--", "/bin/true"), "1 of 254 addresses", "minhost apply --only range")
	m.want(0, m.ada("run", "--", "/bin/true"))
	m.want(0, m.root("apply", "--only", "range"), "added=1")
	m.want(0, m.ada("run", "--name", "web", "--", "/bin/true"))
}

// TestHelperRestart: leases outlive the helper, which launchd starts again.
func TestHelperRestart(t *testing.T) {
	m := newMac(t, nil)
	m.install()
	m.run("web", sleep...)
	web, pid := m.lease("web"), m.PID("dev.minimal.helper")
	syscall.Kill(pid, syscall.SIGKILL)
	m.until("another helper", func() bool { p := m.PID("dev.minimal.helper"); return p != 0 && p != pid })
	m.until("it answers", func() bool { return m.ada("status").status == 0 })
	if l := m.lease("web"); l.Address != web.Address || l.State != "attached" || l.Processes != 1 {
		t.Errorf("%+v, was %+v", l, web)
	}
	m.want(1, m.ada("finalize-install", "--undo", "--yes"), "boxes are live", "--force")
	m.want(0, m.ada("finalize-install", "--undo", "--yes", "--force"))
}

// TestUpgrade: another version over a running one: a new file, not new bytes in the old one, services of
// the new version, the box with its address, and no lookup that was lost on the way.
func TestUpgrade(t *testing.T) {
	m := newMac(t, nil)
	m.install()
	m.run("web", sleep...)
	web, inode := m.lease("web"), m.inode()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // a program that looks up all the time
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				m.LookupFresh("web.min.internal")
			}
		}
	}()
	m.download("v2")
	m.want(0, m.ada("finalize-install", "--yes"), "this host is ready")
	close(stop)
	<-done
	if m.inode() == inode {
		t.Error("the running program was overwritten in place: a Mac kills it for good")
	}
	if m.Stalls() > 0 {
		t.Errorf("%d lookups were lost while the answerer was started again", m.Stalls())
	}
	m.want(0, m.ada("status"), "v2")
	if l := m.lease("web"); l.Address != web.Address || l.State != "attached" {
		t.Errorf("%+v, was %+v", l, web)
	}
	before := m.snapshot()
	m.want(0, m.root("finalize-install", "--yes"), "nothing to do")
	if after := m.snapshot(); len(before) != len(after) {
		t.Errorf("a second run wrote")
	}
}

func (m *mac) inode() uint64 {
	m.t.Helper()
	fi, err := os.Stat(filepath.Join(m.Root, "Library/PrivilegedHelperTools/dev.minimal.minhost"))
	if err != nil {
		m.t.Fatal(err)
	}
	return fi.Sys().(*syscall.Stat_t).Ino
}

// TestLowPort: port 80 of the box's own address, for an account that could not bind it.
func TestLowPort(t *testing.T) {
	m := newMac(t, nil)
	m.install()
	m.run("web", append([]string{"--listen", "80"}, sleep...)...)
	c, err := net.Dial("tcp", m.lease("web").Address+":80")
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := net.Dial("tcp", "127.0.0.1:80"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("the host's own port 80: %v", err)
	}
}
