package install

import (
	"strings"
	"testing"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// TestInstallAndUndo is what a new user does. Applied again nothing is written, not even a time.
func TestInstallAndUndo(t *testing.T) {
	before := rig.Bare(t)
	for _, round := range []string{"first", "second"} {
		r := rig.Install(t)
		if !strings.Contains(r.Stdout, "this host is ready") {
			t.Errorf("%s install: %v", round, r)
		}
		rig.Must(t, "verify")
		rig.As(t, rig.User, "verify").Want(t, 0)
		exact := rig.Exact(t)
		for _, args := range [][]string{
			{"finalize-install", "--yes", "--operator", rig.UserName},
			{"finalize-install", "--apply", "--operator", rig.UserName},
			{"apply"},
			{"verify"},
			{"finalize-install", "--show"},
			{"finalize-install", "--json"},
		} {
			rig.Must(t, args...)
			if diff := exact.Diff(rig.Exact(t)); len(diff) > 0 {
				t.Errorf("%v on a finished host wrote:\n  %s", args, strings.Join(diff, "\n  "))
			}
		}
		rig.Undo(t)
		before.Same(t)
		rig.Undo(t)
		before.Same(t)
	}
}

// TestApplyMends: what somebody took away or changed is made again, and nothing else.
func TestApplyMends(t *testing.T) {
	for _, c := range []struct {
		name   string
		break_ []string
		done   string
	}{
		{"table gone", []string{"/usr/sbin/nft", "delete", "table", "inet", "minhost"}, ""},
		{"everything flushed", []string{"/usr/sbin/nft", "flush", "ruleset"}, ""},
		{"a chain flushed", []string{"/usr/sbin/nft", "flush", "chain", "inet", "minhost", "from_box"}, ""},
		{"program made writable", []string{"/bin/chmod", "0777", rig.Program}, "done: copy this program"},
		{"program gone", []string{"/bin/rm", rig.Program}, "done: copy this program"},
		{"operators gone", []string{"/bin/rm", rig.Operators}, "done: let the runners"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := rig.Bare(t)
			rig.Install(t)
			rig.Cmd{Path: c.break_[0]}.Run(t, c.break_[1:]...).Want(t, 0)
			r := rig.Install(t)
			if !strings.Contains(r.Stdout, c.done) {
				t.Errorf("not mended: %v", r)
			}
			rig.Must(t, "verify")
			rig.Undo(t)
			before.Same(t)
		})
	}
}
