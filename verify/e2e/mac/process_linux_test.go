package mac

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// running finds processes whose arguments are these.
func running(args ...string) (pids []int) {
	want := strings.Join(args, "\x00") + "\x00"
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		if b, err := os.ReadFile(path); err == nil && string(b) == want {
			pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestOneProcess: a box is its one attached process. A second one cannot join; what it started runs on when it
// has ended, without name and lease.
func TestOneProcess(t *testing.T) {
	m := newMac(t, nil)
	m.install()
	m.run("web", sleep...)
	m.want(125, m.ada("run", "--join", "web", "--", "/bin/true"), "a box is its one attached process", "start further processes from the attached one")
	m.want(0, m.ada("run", "--name", "short", "--", "/bin/sh", "-c", "/bin/sleep 601 </dev/null >/dev/null 2>&1 & exit 0"))
	m.until("no lease of it", func() bool { return m.lease("short").Name == "" })
	left := running("/bin/sleep", "601")
	if len(left) != 1 {
		t.Fatalf("%d of its children run on, want 1", len(left))
	}
	if m.Lookup("short.min.internal").IsValid() {
		t.Error("its name is still there")
	}
	syscall.Kill(left[0], syscall.SIGKILL)
}

// TestEndsWithRunner: the runner dies: the process that it attached, which leads a group, ends with what
// it started.
func TestEndsWithRunner(t *testing.T) {
	m := newMac(t, nil)
	m.install()
	b := m.run("web", "--", "/bin/sh", "-c", "/bin/sleep 602 & wait")
	m.until("both run", func() bool { return len(running("/bin/sleep", "602")) == 1 })
	b.cmd.Process.Kill()
	m.until("neither runs", func() bool { return len(running("/bin/sleep", "602")) == 0 })
	m.until("no lease", func() bool { return len(m.leases()) == 0 })
}
