package mac

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/host/hosttest"
	"github.com/gominimal/minhost/verify/fakedarwin"
)

// TestInstall is the whole life: one prompt, a second run that writes nothing, undo without a trace.
func TestInstall(t *testing.T) {
	m := newMac(t, nil)
	before := m.snapshot()
	m.install()
	if n := m.Prompts(); n != 1 {
		t.Errorf("%d prompts, want one in all", n)
	}
	m.want(0, m.ada("verify"), "this host is ready", "macOS 26.0 (25A1)")
	if !m.complete() {
		t.Errorf("lo0: %v", m.Aliases())
	}
	if a := m.Lookup("minhost.min.internal"); a != localhost {
		t.Errorf("the system looks up %v", a)
	}
	installed := m.snapshot()
	m.Calls()
	m.want(0, m.ada("finalize-install"), "nothing to do") // asks neither for a yes nor for a password
	m.want(0, m.root("finalize-install", "--yes"), "nothing to do")
	for _, c := range m.Calls() {
		// Each of these but sudo makes macOS tell the user of a background item again.
		for _, verb := range []string{"bootstrap", "bootout", "enable", "kickstart", "alias", "sudo"} {
			if strings.Contains(" "+c, " "+verb) {
				t.Errorf("a second run calls %s", c)
			}
		}
	}
	if diff := hosttest.Diff(installed, m.snapshot()); len(diff) > 0 {
		t.Errorf("a second run changed: %q", diff)
	}
	m.want(0, m.ada("finalize-install", "--undo", "--yes"))
	if diff := hosttest.Diff(before, m.snapshot()); len(diff) > 0 {
		t.Errorf("undo left: %q", diff)
	}
}

// TestAgain: what an optional step lacks is something to do, for root too; another account that is no
// operator yet is asked for a password, since nobody but root can see what it lacks.
func TestAgain(t *testing.T) {
	m := newMac(t, nil)
	m.install()
	if err := os.Remove(filepath.Join(m.Root, "private/etc/resolver/min.internal")); err != nil {
		t.Fatal(err)
	}
	m.want(0, m.root("finalize-install", "--yes"), "done: write /private/etc/resolver/min.internal")
	if a := m.Lookup("minhost.min.internal"); a != localhost {
		t.Errorf("the system looks up %v", a)
	}
	asked := m.Prompts()
	m.want(1, m.as(fakedarwin.Bob, program, "ls"), "operator")
	m.want(0, m.as(fakedarwin.Bob, program, "finalize-install", "--yes"), "done: let the runners of bob")
	m.want(0, m.as(fakedarwin.Bob, program, "ls"))
	if n := m.Prompts() - asked; n != 1 {
		t.Errorf("%d prompts for bob", n)
	}
}
