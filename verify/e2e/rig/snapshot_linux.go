package rig

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/host/hosttest"
)

// Snapshot describes what minhost may have changed: files, cgroups, their BPF programs, rules,
// links, addresses, routes, listening sockets, processes.
type Snapshot map[string]string

// Take looks at the host as root.
func Take(t testing.TB) Snapshot {
	t.Helper()
	s := Snapshot{}
	for _, dir := range []string{"/etc", "/var/lib", "/run"} {
		for path, what := range hosttest.Snapshot(dir) {
			if dir == "/run" && (path == "netlab" || strings.HasPrefix(path, "netlab/")) {
				continue // the layers of the lab itself
			}
			s[filepath.Join(dir, path)] = what
		}
	}
	s.local(t)
	s.cgroups(t)
	s.rules(t)
	s["links"] = tool(t, "/usr/sbin/ip", "-o", "link")
	s["addresses"] = tool(t, "/usr/sbin/ip", "-o", "address")
	s["routes"] = tool(t, "/usr/sbin/ip", "route", "show", "table", "all") + tool(t, "/usr/sbin/ip", "rule")
	s.listeners(t)
	for _, p := range Processes(t) {
		s["process "+p.String()] = p.Exe
	}
	return s
}

// local describes /usr/local, three levels deep, by what lstat tells: whole toolchains lie there, in
// which no step has any business. minhost's own files are hashed.
func (s Snapshot) local(t testing.TB) {
	t.Helper()
	err := filepath.WalkDir("/usr/local", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if strings.Count(p, "/") > 5 {
			return fs.SkipDir
		}
		s[p] = info.Mode().String()
		if info.Mode().IsRegular() {
			s[p] += fmt.Sprintf(" %d bytes %v", info.Size(), info.ModTime())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, what := range hosttest.Snapshot(filepath.Dir(Program)) {
		if !strings.HasPrefix(what, "unreadable") {
			s[filepath.Join(filepath.Dir(Program), path)] = what
		}
	}
}

// cgroups describes every cgroup: owner, mode, controllers given to children, BPF programs.
func (s Snapshot) cgroups(t testing.TB) {
	t.Helper()
	err := filepath.WalkDir(Mount, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		control, err := os.ReadFile(p + "/cgroup.subtree_control")
		if err != nil {
			return err
		}
		programs, err := attached(p)
		s[p] = fmt.Sprintf("%s %q bpf %v", info.Mode(), control, programs)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// listeners describes the sockets that wait for somebody, TCP and UDP.
func (s Snapshot) listeners(t testing.TB) {
	t.Helper()
	for _, kind := range []string{"tcp", "tcp6", "udp", "udp6"} {
		b, err := os.ReadFile("/proc/net/" + kind)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			// sl local_address rem_address st: 0A is LISTEN, 07 an unconnected UDP socket
			if f := strings.Fields(line); len(f) > 3 && (f[3] == "0A" || f[3] == "07") {
				s["listens "+kind+" "+f[1]] = f[3]
			}
		}
	}
}

// Same fails the test when the host looks different now.
func (s Snapshot) Same(t testing.TB) {
	t.Helper()
	if diff := s.Diff(Take(t)); len(diff) > 0 {
		if len(diff) > 20 {
			diff = append(diff[:20], fmt.Sprintf("and %d more", len(diff)-20))
		}
		t.Errorf("the host is not as it was:\n  %s", strings.Join(diff, "\n  "))
	}
}

// Diff lists what differs: "-" gone, "+" new, "!" changed.
func (s Snapshot) Diff(now Snapshot) []string { return hosttest.Diff(s, now) }

// rules describes every table line by line: "rules inet minhost: LINE", numbered.
func (s Snapshot) rules(t testing.TB) {
	t.Helper()
	table, n := "", 0
	for line := range strings.Lines(ruleset(t)) {
		line = strings.TrimRight(line, "\n")
		if name, ok := strings.CutPrefix(line, "table "); ok {
			table, n = strings.TrimSuffix(name, " {"), 0
		}
		s[fmt.Sprintf("rules %s %3d", table, n)] = line
		n++
	}
}

// ruleset is the text of every rule, without what packets change: counters (-s), and elements that expire
// by themselves. A refused packet makes them, verify's own too.
func ruleset(t testing.TB, flags ...string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(tool(t, "/usr/sbin/nft", append(flags, "-s", "list", "ruleset")...)) {
		if !strings.Contains(line, " expires ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// Rules is the text of every rule, with handles: what is written again gets new ones.
func Rules(t testing.TB) string {
	t.Helper()
	return ruleset(t, "-a")
}

// Exact describes what a second run must not have written: inode, size and both times of every
// file of minhost, the ids of cgroups, programs and processes, the handles of rules. Lock and log are
// left out: they are written by whoever looks.
func Exact(t testing.TB) Snapshot {
	t.Helper()
	s := Snapshot{"rules": Rules(t)}
	for _, dir := range []string{filepath.Dir(Program), StateDir, RunDir} {
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || p == RunDir+"/apply.lock" || p == Log {
				return err
			}
			var st unix.Stat_t
			err = unix.Lstat(p, &st)
			s[p] = fmt.Sprintf("inode %d, %d bytes, %v %v", st.Ino, st.Size, st.Mtim, st.Ctim)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{Tree, Tree + "/holder", Boxes} {
		programs, err := attached(dir)
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(dir, &st)
		}
		if err != nil {
			t.Fatal(err)
		}
		s[dir] = fmt.Sprintf("id %d, %v", st.Ino, programs)
	}
	for _, p := range Processes(t) {
		s["process "+p.String()] = p.Exe
	}
	return s
}

// Quick is Take without what is slow to look at and no step touches: /etc, the rest of /usr/local,
// links and routes. Loops compare it, and Take once at their end.
func Quick(t testing.TB) Snapshot {
	t.Helper()
	s := Snapshot{}
	s.rules(t)
	for _, dir := range []string{filepath.Dir(filepath.Dir(Program)), "/var/lib", "/run"} {
		for path, what := range hosttest.Snapshot(dir) {
			if dir != "/run" || path != "netlab" && !strings.HasPrefix(path, "netlab/") {
				s[filepath.Join(dir, path)] = what
			}
		}
	}
	s.cgroups(t)
	s.listeners(t)
	for _, p := range Processes(t) {
		s["process "+p.String()] = p.Exe
	}
	return s
}
