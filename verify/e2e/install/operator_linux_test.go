package install

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// may tells whether an account can start a box; the refusal must name the way out.
func may(t *testing.T, c rig.Cmd) bool {
	t.Helper()
	r := c.Run(t, "run", "--", "/bin/true")
	if r.Status == 0 {
		return true
	}
	r.Want(t, 125, "operator add")
	return false
}

// TestOperators: who may start boxes is decided at the call: nobody has to log in again.
func TestOperators(t *testing.T) {
	before := rig.Bare(t)
	alice, bob := rig.Cmd{UID: rig.User}, rig.Cmd{UID: rig.Other}
	group, err := os.ReadFile("/etc/group")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.WriteFile("/etc/group", group, 0o644) })
	want := func(what string, c rig.Cmd, allowed bool) {
		t.Helper()
		if may(t, c) != allowed {
			t.Errorf("%s: may start boxes: %v, want %v", what, !allowed, allowed)
		}
	}
	rig.Install(t)
	want("the operator", alice, true)
	want("another user", bob, false)
	want("root", rig.Cmd{}, true)
	if r := rig.Must(t, "operator", "list"); !strings.Contains(r.Stdout, "4201  alice") || strings.Contains(r.Stdout, "bob") {
		t.Error(r)
	}
	for _, args := range [][]string{{"operator", "add", "bob"}, {"operator", "list"}, {"apply"}} {
		alice.Run(t, args...).Want(t, 1, "root", "sudo minhost "+args[0])
	}
	rig.Run(t, "operator", "add", "nobody-here").Want(t, 1, "nobody-here", "no such account")
	rig.Run(t, "finalize-install", "--yes", "--operator", "nobody-here").Want(t, 1, "no such account")

	rig.Must(t, "operator", "add", "bob")
	want("an added operator", bob, true)
	rig.Must(t, "operator", "add", "bob")
	rig.Must(t, "operator", "remove", "bob")
	want("a removed operator", bob, false)

	// The group, from the group file and from the process alone.
	const gid = 4300
	if err := os.WriteFile("/etc/group", fmt.Appendf(group, "minhost:x:%d:bob\n", gid), 0o644); err != nil {
		t.Fatal(err)
	}
	want("a member by the group file", bob, true)
	if err := os.WriteFile("/etc/group", fmt.Appendf(group, "minhost:x:%d:\n", gid), 0o644); err != nil {
		t.Fatal(err)
	}
	want("no member any more", bob, false)
	want("a member by its process", rig.Cmd{UID: rig.Other, Groups: []uint32{gid}}, true)
	if err := os.WriteFile("/etc/group", group, 0o644); err != nil {
		t.Fatal(err)
	}

	rig.Must(t, "finalize-install", "--yes", "--operator", "bob")
	want("the first operator", alice, true)
	want("the second operator", bob, true)
	rig.Undo(t)
	before.Same(t)
}

// TestOperatorOfSudo: who called sudo is the operator; root alone makes none.
func TestOperatorOfSudo(t *testing.T) {
	before := rig.Bare(t)
	rig.Must(t, "finalize-install", "--yes")
	if may(t, rig.Cmd{UID: rig.User}) {
		t.Error("somebody is an operator whom nobody named")
	}
	rig.Cmd{Env: []string{"SUDO_UID=4201"}}.Run(t, "finalize-install", "--yes").Want(t, 0)
	if !may(t, rig.Cmd{UID: rig.User}) {
		t.Error("who called sudo is no operator")
	}
	rig.Undo(t)
	before.Same(t)
}

// TestOperatorsOfRoot: a host that root prepared for itself has a list too, and undo takes it back with
// everybody who was added later.
func TestOperatorsOfRoot(t *testing.T) {
	before := rig.Bare(t)
	rig.Must(t, "finalize-install", "--yes")
	rig.Must(t, "operator", "add", rig.UserName)
	if !may(t, rig.Cmd{UID: rig.User}) {
		t.Error("an added operator may not start boxes")
	}
	exact := rig.Exact(t)
	rig.Must(t, "finalize-install", "--yes")
	if diff := exact.Diff(rig.Exact(t)); len(diff) > 0 {
		t.Errorf("a second run wrote: %s", strings.Join(diff, "\n"))
	}
	rig.Undo(t)
	before.Same(t)
}
