package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Proc is a process of minhost: its program is one that the rig built, or a copy of it.
type Proc struct {
	PID, Parent int
	UID         uint32
	// Started is when, since the machine booted, to 10 ms.
	Started time.Duration
	// Exe is what the kernel says it runs; " (deleted)" follows when the file is gone.
	Exe  string
	Args []string
}

// Role is the first argument: helper, resolverd, supervise.
func (p Proc) Role() string {
	if len(p.Args) < 2 {
		return ""
	}
	return p.Args[1]
}

func (p Proc) String() string {
	return fmt.Sprintf("%d %s uid %d", p.PID, strings.Join(p.Args, " "), p.UID)
}

// Uptime is the clock of Proc.Started.
func Uptime(t testing.TB) time.Duration {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.Nano())
}

// Kill sends SIGKILL.
func (p Proc) Kill() { _ = syscall.Kill(p.PID, syscall.SIGKILL) }

// Processes lists what of minhost runs, and buries what ended: the test is process 1 here, so
// orphans are its own.
func Processes(t testing.TB) []Proc {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var all []Proc
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if p, ok := process(pid); ok {
			all = append(all, p)
		}
	}
	return all
}

func process(pid int) (Proc, bool) {
	dir := fmt.Sprintf("/proc/%d", pid)
	exe, err := os.Readlink(dir + "/exe")
	if err != nil {
		bury(pid, dir)
		return Proc{}, false
	}
	base := filepath.Base(strings.TrimSuffix(exe, " (deleted)"))
	if !strings.HasPrefix(base, "minhost") && filepath.Dir(exe) != filepath.Dir(Binary(Standard)) {
		return Proc{}, false
	}
	cmdline, err := os.ReadFile(dir + "/cmdline")
	if err != nil {
		return Proc{}, false
	}
	p := Proc{PID: pid, Exe: exe, Args: strings.Split(strings.TrimSuffix(string(cmdline), "\x00"), "\x00")}
	if stat, err := os.ReadFile(dir + "/stat"); err == nil {
		// Field 22, in ticks of USER_HZ, which is 100 on every architecture of Go's.
		f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		ticks, _ := strconv.ParseInt(f[19], 10, 64)
		p.Started = time.Duration(ticks) * 10 * time.Millisecond
	}
	status, _ := os.ReadFile(dir + "/status")
	for line := range strings.Lines(string(status)) {
		f := strings.Fields(line)
		switch {
		case len(f) > 1 && f[0] == "PPid:":
			p.Parent, _ = strconv.Atoi(f[1])
		case len(f) > 1 && f[0] == "Uid:":
			uid, _ := strconv.ParseUint(f[1], 10, 32)
			p.UID = uint32(uid)
		}
	}
	return p, true
}

// bury reaps an orphan that ended. Children that this process started itself are os/exec's: they are
// in its session, daemons of minhost and their children are not.
func bury(pid int, dir string) {
	b, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil || len(f) < 4 {
		return
	}
	mine := strings.Fields(string(own[strings.LastIndexByte(string(own), ')')+1:]))
	if f[0] == "Z" && f[1] == "1" && f[3] != mine[3] {
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
	}
}

// Only returns the one process with this role; the test fails when there is none or more.
func Only(t testing.TB, role string) Proc {
	t.Helper()
	var found []Proc
	for _, p := range Processes(t) {
		if p.Role() == role {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d processes have the role %s: %v", len(found), role, Processes(t))
	}
	return found[0]
}

// Roles lists the roles of what runs, sorted.
func Roles(t testing.TB) []string {
	t.Helper()
	var roles []string
	for _, p := range Processes(t) {
		roles = append(roles, p.Role())
	}
	slices.Sort(roles)
	return roles
}
