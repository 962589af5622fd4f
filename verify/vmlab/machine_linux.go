package vmlab

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

//go:embed boot.sh
var bootScript string

// Machine is a Debian system. It is powered off when the test ends.
type Machine struct {
	t     testing.TB
	Suite string
	work  string
	group string // its cgroup, which is the root inside
	unit  *exec.Cmd
	init  int // process 1, as the test sees it
	ended chan struct{}
}

// New boots a fresh machine of the suite and waits until its boot is over.
func New(t testing.TB, suite string) *Machine {
	t.Helper()
	m := Prepare(t, suite)
	m.Boot()
	return m
}

// Prepare makes a machine that is not booted yet.
func Prepare(t testing.TB, suite string) *Machine {
	t.Helper()
	base := "/run/vmlab" // a tmpfs of the lab
	if err := os.MkdirAll(base, 0o755); err != nil {
		t.Fatal(err)
	}
	work, err := os.MkdirTemp(base, suite+"-")
	if err != nil {
		t.Fatal(err)
	}
	m := &Machine{t: t, Suite: suite, work: work, group: filepath.Join("/sys/fs/cgroup", filepath.Base(work))}
	for _, err := range []error{
		os.Chmod(work, 0o755), os.Mkdir(filepath.Join(work, "shared"), 0o755),
		os.WriteFile(filepath.Join(work, "console"), nil, 0o600),
		os.WriteFile(filepath.Join(work, "boot.sh"), []byte(bootScript), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{Minhost, Next, Faulty, Probe, Musl} {
		if _, err := os.Stat(filepath.Join(os.Getenv(binEnv), name)); name == Musl && err != nil {
			continue
		}
		if err := os.Link(filepath.Join(os.Getenv(binEnv), name), filepath.Join(work, "shared", name)); err != nil {
			copyFile(t, filepath.Join(os.Getenv(binEnv), name), filepath.Join(work, "shared", name))
		}
	}
	outside(t)
	t.Cleanup(m.end)
	return m
}

// On has failures reported to another test: a subtest, and afterwards its parent again.
func (m *Machine) On(t testing.TB) { m.t = t }

// Boot starts the machine and waits until systemd has nothing more to do.
func (m *Machine) Boot() {
	m.t.Helper()
	m.PowerOn()
	m.WaitBoot()
}

// PowerOn starts the machine and returns as soon as its process 1 runs.
func (m *Machine) PowerOn() {
	m.t.Helper()
	id, err := os.ReadFile("/proc/sys/kernel/random/uuid")
	if err == nil {
		err = os.WriteFile(filepath.Join(m.work, "boot_id"), id, 0o444)
	}
	if err == nil {
		err = os.MkdirAll(m.group, 0o755)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	group, err := os.Open(m.group)
	if err != nil {
		m.t.Fatal(err)
	}
	defer group.Close()
	cmd := exec.Command("unshare", "-C", "-m", "-p", "-n", "-u", "-i", "-f", "--kill-child", "--propagation", "private",
		filepath.Join(m.work, "boot.sh"), rootOf(m.Suite), m.work)
	// Its cgroup is the root inside, so it is there before it unshares the cgroup namespace.
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.unit, m.ended = cmd, make(chan struct{})
	go func() {
		cmd.Wait()
		close(m.ended)
	}()
	m.init = m.firstChild(&out)
	m.plug()
	fmt.Fprintln(in, "go")
	in.Close()
}

// firstChild waits for process 1 of the machine.
func (m *Machine) firstChild(out *bytes.Buffer) int {
	m.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if child, err := onlyChild(m.unit.Process.Pid); err == nil {
			return child
		}
		select {
		case <-m.ended:
			m.t.Fatalf("machine did not start: %s", out)
		default:
		}
	}
	m.t.Fatalf("machine has no process 1")
	return 0
}

// onlyChild reads the one child of a process.
func onlyChild(pid int) (int, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// WaitBoot waits until init has nothing more to do. Units that failed are the tests' to find.
func (m *Machine) WaitBoot() {
	m.t.Helper()
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		state, over := m.bootState()
		if over {
			return
		}
		if time.Now().After(end) {
			m.t.Fatalf("machine does not finish its boot: %q\n%s", state, m.Console())
		}
	}
}

// Console is what init printed, since the first boot.
func (m *Machine) Console() string {
	b, _ := os.ReadFile(filepath.Join(m.work, "console"))
	return string(tail(b, 4000))
}

func (m *Machine) end() {
	if m.unit == nil {
		return
	}
	m.unit.Process.Signal(syscall.SIGKILL)
	<-m.ended
	m.wipeGroup()
	os.RemoveAll(m.work)
}

// wipeGroup removes the machine's cgroups; the last processes leave them a moment after the end.
func (m *Machine) wipeGroup() {
	for range 200 {
		var dirs []string
		filepath.WalkDir(m.group, func(p string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, p)
			}
			return nil
		})
		if len(dirs) == 0 {
			return
		}
		for i := len(dirs) - 1; i >= 0; i-- {
			syscall.Rmdir(dirs[i])
		}
		time.Sleep(5 * time.Millisecond)
	}
}
