package install

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// TestKilledAtAnyMoment kills the real program by the clock: also between two changes, while it waits
// for the services or looks again. The tests of each change are in TestKilledInstall.
func TestKilledAtAnyMoment(t *testing.T) {
	before := rig.Bare(t)
	quick := rig.Quick(t)
	took := rig.Install(t).Took
	rig.Undo(t)
	const parts = 10
	for i := range parts {
		t.Run(fmt.Sprintf("%d of %d", i, parts), func(t *testing.T) {
			p := rig.Cmd{}.Start(t, install...)
			time.Sleep(took * time.Duration(i) / parts)
			p.Signal(syscall.SIGKILL)
			p.Wait()
			rig.Install(t)
			if roles := rig.Roles(t); !slices.Equal(roles, allRoles) {
				t.Errorf("running: %v", roles)
			}
			p = rig.Cmd{}.Start(t, undo...)
			time.Sleep(took / 2 * time.Duration(i) / parts)
			p.Signal(syscall.SIGKILL)
			p.Wait()
			rig.Undo(t)
			if diff := quick.Diff(rig.Quick(t)); len(diff) > 0 {
				t.Errorf("after undo the host is not as it was:\n  %s", strings.Join(diff, "\n  "))
			}
		})
	}
	before.Same(t)
}

// TestTwoAtOnce: two admins at the same time get one installation; two undos one bare host.
func TestTwoAtOnce(t *testing.T) {
	before := rig.Bare(t)
	for _, args := range [][]string{install, undo} {
		a, b := rig.Cmd{}.Start(t, args...), rig.Cmd{}.Start(t, args...)
		a.Wait().Want(t, 0)
		b.Wait().Want(t, 0)
		if args[1] == "--yes" {
			rig.Must(t, "verify")
		}
	}
	before.Same(t)
}

// TestHungHelper: a helper that answers nobody is replaced by apply, and keeps no admin from undoing.
func TestHungHelper(t *testing.T) {
	before := rig.Bare(t)
	rig.Install(t)
	c := rig.Cmd{Timeout: 40 * time.Second}
	hang := func() {
		t.Helper()
		if err := syscall.Kill(rig.Only(t, "helper").PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	hang()
	c.Run(t, "apply").Want(t, 0)
	rig.Must(t, "verify")
	box := rig.Box(t, "web")
	hang()
	c.Run(t, append(undo, "--force")...).Want(t, 0)
	box.Wait()
	before.Same(t)
}

// TestOnly: the steps that were asked for and no other; an unknown one names those that there are.
func TestOnly(t *testing.T) {
	before := rig.Bare(t)
	rig.Run(t, "finalize-install", "--yes", "--only", "nonsense").Want(t, 1, "nonsense", "program, operator, range, tree")
	before.Same(t)
	r := rig.Run(t, "finalize-install", "--yes", "--only", "tree")
	if r.Status != 1 || strings.Count(r.Stdout, "done: ") != 1 || !strings.Contains(r.Stdout, "done: make the cgroup tree") {
		t.Errorf("want status 1 (the host is not ready) and the tree alone: %v", r)
	}
	rig.Undo(t)
	before.Same(t)
}

// TestNotInstalled: every verb on a bare host says in one line what is missing and what to type.
func TestNotInstalled(t *testing.T) {
	before := rig.Bare(t)
	for _, args := range [][]string{{"ls"}, {"status"}, {"explain", "web", "192.0.2.7:443"}, {"run", "--", "/bin/true"}, {"watch"}} {
		r := rig.As(t, rig.User, args...)
		if r.Status == 0 || !strings.Contains(r.Stderr, "next: minhost finalize-install") {
			t.Errorf("%v: %v", args, r)
		}
	}
	if r := rig.Run(t, "verify"); r.Status != 1 || !strings.Contains(r.Stdout, "failed") {
		t.Error(r)
	}
	rig.Run(t, "operator", "add", rig.UserName).Want(t, 1, "next: minhost finalize-install")
	rig.Undo(t)
	before.Same(t)
}
