package mac

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/host/hosttest"
)

// points are the changes before which the program is killed: first and last, and some between, most of them
// not among the 254 aliases, which are all alike.
func points(changes []string, some int) []int {
	var others, aliases, chosen []int
	for i, c := range changes {
		if strings.HasPrefix(c, "ioctl ") {
			aliases = append(aliases, i+1)
		} else {
			others = append(others, i+1)
		}
	}
	for n := range some {
		chosen = append(chosen, others[n*(len(others)-1)/(some-1)])
	}
	if len(aliases) > 2 {
		chosen = append(chosen, aliases[len(aliases)/2])
	}
	return chosen
}

// changes runs minhost as root and lists what it did to the Mac.
func (m *mac) changes(args ...string) []string {
	m.t.Helper()
	m.env = []string{"MINHOST_CHANGES=/private/tmp/changes"}
	m.want(0, m.root(args...))
	m.env = nil
	list := filepath.Join(m.Root, "private/tmp/changes")
	b, err := os.ReadFile(list)
	if err != nil {
		m.t.Fatal(err)
	}
	os.Remove(list)
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// cut runs minhost as root and kills it right before its n-th change.
func (m *mac) cut(n int, args ...string) {
	m.t.Helper()
	m.env = []string{fmt.Sprintf("MINHOST_CUT=%d", n)}
	m.want(-1, m.root(args...)) // SIGKILL
	m.env = nil
}

// TestCut: kill -9 at any point: the next run converges, or undo leaves nothing.
func TestCut(t *testing.T) {
	m := newMac(t, nil)
	m.download("cut")
	before := m.snapshot()
	applied := m.changes("finalize-install", "--yes")
	undone := m.changes("finalize-install", "--undo", "--yes")
	if len(applied) < 300 || len(undone) < 290 {
		t.Fatalf("%d and %d changes", len(applied), len(undone))
	}
	clean := func(what string) {
		t.Helper()
		m.want(0, m.root("finalize-install", "--undo", "--yes"))
		if diff := hosttest.Diff(before, m.snapshot()); len(diff) > 0 {
			t.Fatalf("%s: undo left %q", what, diff)
		}
	}
	for i, n := range points(applied, 7) {
		what := fmt.Sprintf("apply cut before change %d (%s)", n, applied[n-1])
		m.cut(n, "finalize-install", "--yes")
		if i%2 == 0 {
			m.want(0, m.root("finalize-install", "--yes"), "this host is ready")
		}
		clean(what)
	}
	for _, n := range points(undone, 5) {
		m.want(0, m.root("finalize-install", "--yes"))
		m.cut(n, "finalize-install", "--undo", "--yes")
		clean(fmt.Sprintf("undo cut before change %d (%s)", n, undone[n-1]))
	}
}
