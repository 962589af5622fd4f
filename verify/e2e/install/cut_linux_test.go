package install

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

var (
	install = []string{"finalize-install", "--yes", "--operator", rig.UserName}
	undo    = []string{"finalize-install", "--undo", "--yes"}
)

// changesOf runs the program and returns the changes it made to the host, in order.
func changesOf(t *testing.T, args ...string) []string {
	t.Helper()
	list := t.TempDir() + "/changes"
	rig.Cmd{Path: rig.Binary(faulty), Env: []string{"MINHOST_CHANGES=" + list}}.Run(t, args...).Want(t, 0)
	b, err := os.ReadFile(list)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// cutAt runs the program and has it killed before its n-th change; without as many changes it ends well.
func cutAt(t *testing.T, n, status int, args ...string) {
	t.Helper()
	rig.Cmd{Path: rig.Binary(faulty), Env: []string{"MINHOST_CUT=" + strconv.Itoa(n)}}.Run(t, args...).Want(t, status)
}

func run(t *testing.T, args ...string) {
	t.Helper()
	rig.Cmd{Path: rig.Binary(faulty)}.Run(t, args...).Want(t, 0)
}

const killed = 128 + 9

// forEach calls f for each cut and stops at the first that fails: the next ones would say the same.
func forEach(t *testing.T, changes []string, f func(t *testing.T, n int)) {
	t.Helper()
	for i, change := range changes {
		if !t.Run(strconv.Itoa(i+1)+" "+change, func(t *testing.T) { f(t, i+1) }) {
			return
		}
	}
}

// TestKilledInstall kills finalize-install before each change that it makes. The next run converges,
// one more would not survive a single change and does, undo leaves nothing; undo right after the kill
// leaves nothing either.
func TestKilledInstall(t *testing.T) {
	before := rig.Bare(t)
	quick := rig.Quick(t)
	changes := changesOf(t, install...)
	run(t, undo...)
	// Fewer mean that an edge stopped asking the gate.
	if len(changes) < 100 {
		t.Fatalf("only %d changes: %q", len(changes), changes)
	}
	same := func(t *testing.T) {
		t.Helper()
		if diff := quick.Diff(rig.Quick(t)); len(diff) > 0 {
			t.Fatalf("after undo the host is not as it was:\n  %s", strings.Join(diff, "\n  "))
		}
	}
	forEach(t, changes, func(t *testing.T, n int) {
		// The journal is written 14 times in 5 changes each: every second one is taken for either
		// way, so that each of the 5 is met in both.
		often := strings.Contains(changes[n-1], "journal.json") || changes[n-1] == "sync "+rig.StateDir
		if !often || n%2 == 0 {
			cutAt(t, n, killed, install...)
			run(t, undo...)
			same(t)
		}
		if !often || n%2 == 1 {
			cutAt(t, n, killed, install...)
			run(t, install...)
			cutAt(t, 1, 0, install...)
			run(t, undo...)
			same(t)
		}
	})
	cutAt(t, len(changes)+1, 0, install...)
	cutAt(t, 1, 0, install...)
	run(t, undo...)
	before.Same(t)
}

// TestKilledUndo kills undo before each change that it makes: undo again ends it.
func TestKilledUndo(t *testing.T) {
	before := rig.Bare(t)
	quick := rig.Quick(t)
	run(t, install...)
	changes := changesOf(t, undo...)
	before.Same(t)
	if len(changes) < 50 {
		t.Fatalf("only %d changes: %q", len(changes), changes)
	}
	forEach(t, changes, func(t *testing.T, n int) {
		run(t, install...)
		cutAt(t, n, killed, undo...)
		run(t, undo...)
		if diff := quick.Diff(rig.Quick(t)); len(diff) > 0 {
			t.Fatalf("after the second undo the host is not as it was:\n  %s", strings.Join(diff, "\n  "))
		}
	})
	before.Same(t)
}

// TestNoFaultPoints: the program that people run has no word of the gate of these tests.
func TestNoFaultPoints(t *testing.T) {
	for name, want := range map[string]bool{rig.Standard: false, faulty: true} {
		b, err := os.ReadFile(rig.Binary(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"MINHOST_CUT", "MINHOST_CHANGES"} {
			if bytes.Contains(b, []byte(word)) != want {
				t.Errorf("%s: has %s: %v, want %v", name, word, !want, want)
			}
		}
	}
}
