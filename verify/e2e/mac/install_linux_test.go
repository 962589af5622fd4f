package mac

import (
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/host/hosttest"
)

// TestInstall is the whole life: one prompt, a second run that writes nothing, undo without a trace.
func TestInstall(t *testing.T) {
	m := newMac(t, nil)
	before := m.snapshot()
	m.install()
	if n := m.Prompts(); n != 1 {
		t.Errorf("%d prompts, want one in all", n)
	}
	m.want(0, m.ada("verify"), "this host is ready")
	if !m.complete() {
		t.Errorf("lo0: %v", m.Aliases())
	}
	if a := m.Lookup("minhost.min.internal"); a != localhost {
		t.Errorf("the system looks up %v", a)
	}
	installed := m.snapshot()
	m.Calls()
	m.want(0, m.root("finalize-install", "--yes"), "nothing to do")
	for _, c := range m.Calls() {
		// Each of these makes macOS tell the user of a background item again.
		for _, verb := range []string{"bootstrap", "bootout", "enable", "kickstart", "alias"} {
			if strings.Contains(c, " "+verb) {
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
