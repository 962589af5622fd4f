package rig_test

import (
	"os"
	"testing"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

func TestMain(m *testing.M) { os.Exit(rig.Main(m, nil)) }

// TestSnapshotSees: what the other tests compare is able to differ.
func TestSnapshotSees(t *testing.T) {
	before := rig.Bare(t)
	before.Same(t)
	rig.Install(t)
	diff := before.Diff(rig.Take(t))
	for _, want := range []string{
		"+ " + rig.Program, "+ " + rig.Journal, "+ " + rig.Operators, "+ " + rig.Socket, "+ " + rig.Boxes + ": drwxr-xr-x \"\" bpf [0:",
		"+ rules inet minhost   0: table inet minhost {", "+ listens udp 0100007F:3BF9", "+ listens tcp 0100007F:3BFA", "+ process ",
	} {
		if !has(diff, want) {
			t.Errorf("the snapshot does not see %q", want)
		}
	}
	rig.Wipe(t)
	before.Same(t)
}

func has(lines []string, prefix string) bool {
	for _, l := range lines {
		if len(l) >= len(prefix) && l[:len(prefix)] == prefix {
			return true
		}
	}
	return false
}

func TestUserIsNobody(t *testing.T) {
	rig.Bare(t)
	if r := (rig.Cmd{UID: rig.User, Path: "/usr/bin/id"}).Run(t, "-u"); r.Stdout != "4201\n" {
		t.Error(r)
	}
	if r := (rig.Cmd{Path: "/usr/bin/id"}).Run(t, "-u"); r.Stdout != "0\n" {
		t.Error(r)
	}
	rig.As(t, rig.User, "status").Want(t, 1)
}
