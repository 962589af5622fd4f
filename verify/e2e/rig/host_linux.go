package rig

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Users of the host that are not root. Both have an account; nobody else knows them.
const (
	User      = 4201
	UserName  = "alice"
	Other     = 4202
	OtherName = "bob"
)

// The places of minhost on a host, as README and manual page name them.
const (
	Program    = "/usr/local/lib/minhost/minhost"
	StateDir   = "/var/lib/minhost"
	Journal    = StateDir + "/journal.json"
	Operators  = StateDir + "/operators"
	RunDir     = "/run/minhost"
	Socket     = RunDir + "/helper.sock"
	Supervisor = RunDir + "/supervise.lock"
	Log        = RunDir + "/log"
	Mount      = "/sys/fs/cgroup"
	Tree       = Mount + "/minhost"
	Boxes      = Tree + "/boxes"
)

// accounts makes the two users, the first time that it is called inside; and hides an installation
// of the machine itself, of which the copy-on-write layers would show the files.
func accounts(t testing.TB) {
	t.Helper()
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(passwd, fmt.Appendf(nil, "\n%s:x:%d:", UserName, User)) {
		return
	}
	appendFile(t, "/etc/passwd", fmt.Sprintf("\n%s:x:%d:%d::/:/bin/sh\n%s:x:%d:%d::/:/bin/sh\n", UserName, User, User, OtherName, Other, Other))
	appendFile(t, "/etc/group", fmt.Sprintf("\n%s:x:%d:\n%s:x:%d:\n", UserName, User, OtherName, Other))
	if err := os.RemoveAll(filepath.Dir(Program)); err != nil {
		t.Fatal(err)
	}
}

func appendFile(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// Bare gives the test a host without minhost and returns what it looks like. After the test all of
// minhost is torn out by force, so that no test pays for another.
func Bare(t testing.TB) Snapshot {
	t.Helper()
	accounts(t)
	Wipe(t)
	t.Cleanup(func() { Wipe(t) })
	return Take(t)
}

// Wipe removes minhost without asking it: processes, table, tree, files.
func Wipe(t testing.TB) {
	t.Helper()
	Halt(t)
	for _, dir := range []string{filepath.Dir(Program), StateDir} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// Halt leaves of minhost what a reboot leaves: program and journal, but no process, table, tree or lease.
func Halt(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		all := Processes(t)
		if len(all) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("processes do not end: %v", all)
		}
		for _, p := range all {
			p.Kill()
		}
	}
	removeTree(t)
	if err := detach(Mount); err != nil { // what keeps others off the addresses of boxes
		t.Fatal(err)
	}
	_ = exec.Command("/usr/sbin/nft", "delete", "table", "inet", "minhost").Run() // mostly not there
	if err := os.RemoveAll(RunDir); err != nil {
		t.Fatal(err)
	}
}

// removeTree kills what is in the tree and removes it.
func removeTree(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(Tree); err != nil {
		return
	}
	_ = os.WriteFile(Tree+"/cgroup.kill", []byte("1"), 0)
	var err error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var dirs []string
		filepath.WalkDir(Tree, func(p string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, p)
			}
			return nil
		})
		for i := len(dirs) - 1; i >= 0; i-- {
			err = os.Remove(dirs[i])
		}
		if err == nil || len(dirs) == 0 {
			return
		}
	}
	t.Fatalf("remove %s: %v", Tree, err)
}

// Install prepares the host as root, for User, and fails the test when it does not end well.
func Install(t testing.TB) Result {
	t.Helper()
	return Must(t, "finalize-install", "--yes", "--operator", UserName)
}

// Undo takes everything back as root, and fails the test when it does not end well.
func Undo(t testing.TB) Result {
	t.Helper()
	return Must(t, "finalize-install", "--undo", "--yes")
}

// Box starts a box of User with this name whose program prints "up" and then sleeps, and returns
// when it is up.
func Box(t testing.TB, name string, flags ...string) *Process {
	t.Helper()
	args := append([]string{"run", "--name", name}, flags...)
	p := Cmd{UID: User}.Start(t, append(args, "--", "/usr/bin/env", "sh", "-ec", "echo up; exec sleep 300")...)
	p.Await("up")
	return p
}

// Leaves names the leaves of the tree, empty without a tree.
func Leaves(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir(Boxes)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// Eventually waits until the condition holds, at most that long.
func Eventually(t testing.TB, within time.Duration, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", within, strings.TrimSpace(what))
		}
	}
}
