package mac

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/host/hosttest"
	"github.com/gominimal/minhost/verify/fakedarwin"
	"github.com/gominimal/minhost/verify/netlab"
)

const binEnv = "MINHOST_MAC_BIN"

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run builds outside of the namespaces, where the caches of go are.
func run(m *testing.M) int {
	if os.Getenv(binEnv) != "" || netlab.Missing() != "" {
		return netlab.Main(m)
	}
	dir, err := os.MkdirTemp("", "minhost-mac-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Chmod(dir, 0o755)
	}
	const module = "github.com/gominimal/minhost"
	for _, args := range [][]string{
		{"-ldflags", "-s -w -X main.version=v1", "-tags", "fakedarwin", "-o", dir + "/v1", module + "/cmd/minhost"},
		{"-ldflags", "-s -w -X main.version=v2", "-tags", "fakedarwin", "-o", dir + "/v2", module + "/cmd/minhost"},
		{"-ldflags", "-s -w -X main.version=v1", "-tags", "fakedarwin,faultpoints", "-o", dir + "/cut", module + "/cmd/minhost"},
		{"-ldflags", "-s -w", "-o", dir + "/program", module + "/verify/fakedarwin/program"},
	} {
		if err == nil {
			err = build(args...)
		}
	}
	if err == nil {
		err = os.Setenv(binEnv, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mac:", err)
		return 1
	}
	return netlab.Main(m)
}

func build(args ...string) error {
	if overlay := os.Getenv("MINHOST_MAC_OVERLAY"); overlay != "" {
		args = append([]string{"-overlay", overlay}, args...) // a mistake that somebody plants
	}
	cmd := exec.Command("go", append([]string{"build", "-trimpath"}, args...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// mac is one model with the downloaded program in ada's home.
type mac struct {
	*fakedarwin.Mac
	t   *testing.T
	env []string // beside the usual
}

var count atomic.Int32

// newMac boots a model that nobody touched. change may be nil; it is called before the boot.
func newMac(t *testing.T, change func(*fakedarwin.Mac)) *mac {
	t.Helper()
	root := fmt.Sprintf("/run/mac%d", count.Add(1))
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := fakedarwin.Build(root, bin("program")); err != nil {
		t.Fatal(err)
	}
	m := &mac{&fakedarwin.Mac{Root: root, Second: 100 * time.Millisecond, Release: 26, BusyFor: 5, FailAdds: map[string]int{}}, t, nil}
	if change != nil {
		change(m.Mac)
	}
	m.download("v1")
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			m.tellLogs()
		}
		m.Stop()
		syscall.Unmount(root, syscall.MNT_DETACH)
	})
	return m
}

func bin(name string) string { return filepath.Join(os.Getenv(binEnv), name) }

const program = "/Users/ada/minhost"

// download puts a version into ada's home, as hers.
func (m *mac) download(version string) {
	m.t.Helper()
	to := filepath.Join(m.Root, program)
	os.Remove(to)
	if err := errors.Join(fakedarwin.Copy(bin(version), to, 0o755), os.Chown(to, fakedarwin.Ada, 20)); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mac) tellLogs() {
	logs, _ := filepath.Glob(filepath.Join(m.Root, "private/var/log/*"))
	for _, l := range logs {
		b, _ := os.ReadFile(l)
		m.t.Logf("%s:\n%s", filepath.Base(l), b[max(0, len(b)-2000):])
	}
}

// result is what a program did.
type result struct {
	status         int
	stdout, stderr string
}

func (r result) String() string {
	return fmt.Sprintf("status %d\nstdout: %s\nstderr: %s", r.status, r.stdout, r.stderr)
}

// as runs a program of the model's as a user.
func (m *mac) as(uid uint32, name string, args ...string) result {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 90*time.Second)
	defer cancel()
	cmd := m.command(ctx, uid, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		m.t.Fatalf("%s %v: %v", name, args, err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func (m *mac) command(ctx context.Context, uid uint32, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Path, cmd.Err, cmd.Dir = name, nil, "/"
	cmd.Env = append([]string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/Users/ada"}, m.env...)
	gid := uint32(20)
	if uid == 0 {
		gid = 0
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: m.Root, Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	return cmd
}

// ada runs minhost as the user of the Mac, root as root.
func (m *mac) ada(args ...string) result { m.t.Helper(); return m.as(fakedarwin.Ada, program, args...) }
func (m *mac) root(args ...string) result {
	m.t.Helper()
	return m.as(0, program, args...)
}

// want fails the test when a run had another status.
func (m *mac) want(status int, r result, words ...string) result {
	m.t.Helper()
	if r.status != status {
		m.t.Fatalf("want status %d: %v", status, r)
	}
	for _, w := range words {
		if !strings.Contains(r.stdout+r.stderr, w) {
			m.t.Errorf("lacks %q: %v", w, r)
		}
	}
	return r
}

func (m *mac) install() { m.t.Helper(); m.want(0, m.ada("finalize-install", "--yes")) }

// snapshot is all that a person could find changed: files but the runtime of the model, lo0, disabled
// labels (a file), loaded jobs.
func (m *mac) snapshot() map[string]string {
	all := map[string]string{}
	for _, dir := range []string{"Library", "private/etc", "private/var/db", "private/var/log"} {
		for path, what := range hosttest.Snapshot(filepath.Join(m.Root, dir)) {
			all[dir+"/"+path] = what
		}
	}
	for _, a := range m.Aliases() {
		all["lo0 "+a.Addr.String()] = fmt.Sprintf("%08x", a.Mask)
	}
	return all
}

// states reads the plan as ada sees it.
func (m *mac) states() map[string]string {
	m.t.Helper()
	r := m.ada("finalize-install", "--json", "--show")
	var plan struct {
		Steps []struct{ ID, State, Detail string }
	}
	if err := json.Unmarshal([]byte(r.stdout), &plan); err != nil {
		m.t.Fatalf("%v: %v", err, r)
	}
	states := map[string]string{}
	for _, s := range plan.Steps {
		states[s.ID] = s.State + ": " + s.Detail
	}
	return states
}

// until waits for a fact, generously.
func (m *mac) until(what string, fact func() bool) {
	m.t.Helper()
	for end := time.Now().Add(30 * time.Second); !fact(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			m.t.Fatalf("never: %s", what)
		}
	}
}

func (m *mac) complete() bool {
	n := 0
	for _, a := range m.Aliases() {
		if b := a.Addr.As4(); b[2] == 64 && b[3] >= 1 && b[3] <= 254 && b[1] == 0 && a.Mask == 0xffffffff {
			n++
		}
	}
	return n == 254
}

var localhost = netip.AddrFrom4([4]byte{127, 0, 0, 1})
