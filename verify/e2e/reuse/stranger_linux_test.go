package reuse

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/netlab"
)

const strangerUID = 54322

// mount of the lab's cgroup2.
const mount = "/sys/fs/cgroup"

// keeperMain is a caller's process: it has one child and prints its number. For each line of input it kills the
// child and says whether it could bury it.
func keeperMain([]string) int {
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "300"}, &os.ProcAttr{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(p.Pid)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		_ = syscall.Kill(p.Pid, syscall.SIGKILL) // gone already the second time
		fmt.Println(bury(p.Pid))
	}
	_ = syscall.Kill(p.Pid, syscall.SIGKILL)
	return 0
}

// bury waits a while for an end that comes at once, if it comes.
func bury(pid int) string {
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); got == pid || err != nil {
			return "buried"
		}
	}
	return "kept"
}

// victim is the child of a keeper.
type victim struct {
	t      *testing.T
	keeper *netlab.Proc
	pid    int
}

func newVictim(t *testing.T) victim {
	t.Helper()
	keeper := netlab.Start(t, netlab.Spawn{Leaf: netlab.NoLeaf}, "keeper")
	pid, err := strconv.Atoi(keeper.Line())
	if err != nil {
		t.Fatal(err)
	}
	return victim{t, keeper, pid}
}

// die kills it, and says whether its number is free.
func (v victim) die() bool {
	v.t.Helper()
	v.keeper.Say("")
	return v.keeper.Line() == "buried"
}

// stranger is a process of somebody else's in a cgroup of its own.
type stranger struct {
	t   *testing.T
	cmd *exec.Cmd
}

const strangers = mount + "/strangers"

// take starts strangers until one has the number; nil when the number is not to be had.
func take(t *testing.T, pid int) *stranger {
	t.Helper()
	if err := os.MkdirAll(strangers, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(strangers)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for range 50 { // a thread of the test or of the helper may be quicker
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
			t.Fatal(err)
		}
		s := &stranger{t, exec.Command("/bin/sleep", "300")}
		s.cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd()),
			Credential: &syscall.Credential{Uid: strangerUID, Gid: strangerUID}}
		if err := s.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if s.cmd.Process.Pid == pid {
			t.Cleanup(s.end)
			return s
		}
		s.end()
	}
	return nil
}

func (s *stranger) end() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// group is where the stranger is; "" when it has ended.
func (s *stranger) group() string {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil || strings.Contains(string(stat), ") Z") {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSpace(path)
		}
	}
	return ""
}

// untouched wants it alive where it was.
func (s *stranger) untouched(when string) {
	s.t.Helper()
	if s == nil {
		s.t.Errorf("%s: no stranger got the number", when)
		return
	}
	if got := s.group(); got != "/strangers" {
		s.t.Errorf("%s: the stranger is in %q", when, got)
	}
}
