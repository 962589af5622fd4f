package fakedarwin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// launchd is that of one boot. The list of disabled labels is on disk: it survives reboots and uninstalls.
type launchd struct {
	mac  *Mac
	mu   sync.Mutex
	jobs map[string]*job
	over bool // this boot is
}

const disabledFile = "private/var/db/com.apple.xpc.launchd/disabled.json"

func newLaunchd(m *Mac) *launchd { return &launchd{mac: m, jobs: map[string]*job{}} }

func (l *launchd) disabled() map[string]bool {
	all := map[string]bool{}
	b, err := os.ReadFile(filepath.Join(l.mac.Root, disabledFile))
	if err == nil {
		json.Unmarshal(b, &all)
	}
	return all
}

func (l *launchd) setDisabled(label string, off bool) {
	all := l.disabled()
	all[label] = off
	b, _ := json.Marshal(all)
	os.WriteFile(filepath.Join(l.mac.Root, disabledFile), b, 0o600)
}

// bootAll loads what lies in the folder, as the kernel's first process does.
func (l *launchd) bootAll() {
	files, _ := filepath.Glob(filepath.Join(l.mac.Root, "Library/LaunchDaemons/*.plist"))
	for _, f := range files {
		l.mu.Lock()
		l.load("/Library/LaunchDaemons/" + filepath.Base(f))
		l.mu.Unlock()
	}
}

// shutdown ends every job for good.
func (l *launchd) shutdown() {
	l.mu.Lock()
	l.over = true
	all := l.jobs
	l.jobs = map[string]*job{}
	l.mu.Unlock()
	for _, j := range all {
		j.kill(syscall.SIGKILL)
		j.closeSockets()
		j.waitGone(5 * time.Second)
	}
}

// control is launchctl.
func (l *launchd) control(c Call) Answer {
	verb, rest := "", []string(nil)
	if len(c.Args) > 0 {
		verb, rest = c.Args[0], c.Args[1:]
	}
	writes := []string{"bootstrap", "bootout", "enable", "disable", "kickstart"}
	if slices.Contains(writes, verb) && c.uid != 0 {
		return fail(1, "Could not %s: 1: Operation not permitted\nTry re-running the command as root for richer errors.", verb)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	label := ""
	if len(rest) > 0 {
		label = strings.TrimPrefix(rest[len(rest)-1], "system/")
	}
	switch verb {
	case "print":
		return l.print(label)
	case "print-disabled":
		return l.printDisabled()
	case "enable", "disable":
		l.setDisabled(label, verb == "disable")
		return Answer{}
	case "bootstrap":
		return l.bootstrap(rest)
	case "bootout":
		return l.bootout(label)
	case "kickstart":
		return l.kickstart(label, slices.Contains(rest, "-k"))
	case "load", "unload":
		return Answer{Stderr: "Load failed: 5: Input/output error\n"} // and the status is 0
	}
	return fail(64, "Unrecognized subcommand: %s", verb)
}

// bootstrap returns before the job ran.
func (l *launchd) bootstrap(rest []string) Answer {
	if len(rest) != 2 || rest[0] != "system" {
		return fail(64, "Usage: launchctl bootstrap <domain-target> [service-path, ...]")
	}
	return l.load(rest[1])
}

func (l *launchd) load(path string) Answer {
	fi, err := os.Lstat(filepath.Join(l.mac.Root, path))
	if err != nil {
		return fail(2, "Bootstrap failed: 2: No such file or directory")
	}
	if st := fi.Sys().(*syscall.Stat_t); st.Uid != 0 || fi.Mode().Perm()&0o022 != 0 {
		if l.mac.Release >= 26 {
			return fail(5, "%s: Path had bad ownership/permissions\nBootstrap failed: 5: Input/output error", path)
		}
		return fail(122, "%s: Path had bad ownership/permissions\nBootstrap failed: 122: Path had bad ownership/permissions", path)
	}
	j, err := l.read(path)
	switch {
	case err != nil:
		return fail(5, "Bootstrap failed: 5: Input/output error (%v)", err)
	case l.disabled()[j.plist.Label] && l.mac.Release >= 26:
		return fail(5, "Bootstrap failed: 5: Input/output error")
	case l.disabled()[j.plist.Label]:
		return fail(119, "%s: Service is disabled\nBootstrap failed: 119: Service is disabled", path)
	}
	if old := l.jobs[j.plist.Label]; old != nil {
		if old.leaving && l.mac.Release < 15 {
			return fail(37, "Bootstrap failed: 37: Operation already in progress")
		}
		return fail(5, "Bootstrap failed: 5: Input/output error")
	}
	l.jobs[j.plist.Label] = j
	j.openSockets()
	if j.plist.RunAtLoad {
		j.startAfter(l.mac.seconds(l.mac.Slow))
	}
	return Answer{}
}

// bootout returns while the job ends, and its label stays busy for some seconds more.
func (l *launchd) bootout(label string) Answer {
	j := l.jobs[label]
	switch {
	case j == nil:
		return fail(3, "Boot-out failed: 3: No such process")
	case j.leaving:
		return fail(36, "Boot-out failed: 36: Operation now in progress")
	}
	j.leaving = true
	j.closeSockets()
	go func() {
		j.kill(syscall.SIGTERM)
		j.waitGone(l.mac.seconds(5))
		time.Sleep(l.mac.seconds(l.mac.BusyFor))
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.jobs[label] == j {
			delete(l.jobs, label)
		}
	}()
	return Answer{}
}

func (l *launchd) kickstart(label string, again bool) Answer {
	j := l.jobs[label]
	if j == nil || j.leaving {
		return fail(113, "Could not find service \"%s\" in domain for system", label)
	}
	if again && j.pid != 0 {
		j.again = true
		go j.kill(syscall.SIGKILL)
		return Answer{}
	}
	if j.pid == 0 {
		j.startAfter(0)
	}
	return Answer{}
}

func (l *launchd) print(label string) Answer {
	j := l.jobs[label]
	if j == nil {
		text := fmt.Sprintf("Could not find service \"%s\" in domain for system", label)
		if l.mac.Release >= 26 {
			text = "Bad request.\n" + text
		}
		return fail(113, "%s", text)
	}
	return Answer{Stdout: j.describe(l.mac.Release)}
}

func (l *launchd) printDisabled() Answer {
	out := "\n\tdisabled services = {\n"
	for label, off := range l.disabled() {
		word := map[bool]string{true: "disabled", false: "enabled"}[off]
		if l.mac.Release < 15 {
			word = fmt.Sprint(off)
		}
		out += fmt.Sprintf("\t\t%q => %s\n", label, word)
	}
	return Answer{Stdout: out + "\t}\n"}
}

// Disable is somebody's `launchctl disable`, of any time before.
func (m *Mac) Disable(label string) {
	m.launchd.mu.Lock()
	defer m.launchd.mu.Unlock()
	m.launchd.setDisabled(label, true)
}

// Forget takes a job out of launchd the way a switch in System Settings does: no list says why.
func (m *Mac) Forget(label string) {
	m.launchd.mu.Lock()
	j := m.launchd.jobs[label]
	delete(m.launchd.jobs, label)
	m.launchd.mu.Unlock()
	if j != nil {
		j.kill(syscall.SIGKILL)
		j.closeSockets()
	}
}

// PID of a job's process, 0 when it has none.
func (m *Mac) PID(label string) int {
	m.launchd.mu.Lock()
	defer m.launchd.mu.Unlock()
	if j := m.launchd.jobs[label]; j != nil {
		return j.pid
	}
	return 0
}
