package install

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/linux"
	"github.com/gominimal/minhost/verify/e2e/rig"
	"github.com/gominimal/minhost/verify/netlab"
)

// TestUndoWithLiveBoxes: undo names what lives and leaves everything as it is; forced it ends it first.
func TestUndoWithLiveBoxes(t *testing.T) {
	before := rig.Bare(t)
	rig.Install(t)
	web, db := rig.Box(t, "web"), rig.Box(t, "db", "--egress", "deny")
	installed := rig.Exact(t)
	rig.Run(t, undo...).Want(t, 1, "web (uid 4201", "db (uid 4201", "minhost finalize-install --undo --force")
	if diff := installed.Diff(rig.Exact(t)); len(diff) > 0 {
		t.Errorf("a refused undo changed:\n  %s", strings.Join(diff, "\n  "))
	}
	if web.Ended() || db.Ended() {
		t.Error("a refused undo ended a box")
	}
	rig.Must(t, append(undo, "--force")...)
	for _, p := range []*rig.Process{web, db} {
		if r := p.Wait(); r.Status == 0 {
			t.Errorf("the runner of an ended box says nothing: %v", r)
		}
	}
	before.Same(t)
}

// TestUndoWithoutHelper: a helper that is dead cannot tell of boxes; the kernel can.
func TestUndoWithoutHelper(t *testing.T) {
	before := rig.Bare(t)
	rig.Install(t)
	box := rig.Box(t, "web", "--egress", "deny")
	for _, role := range []string{"supervise", "helper", "resolverd"} {
		rig.Only(t, role).Kill()
	}
	leaves := rig.Leaves(t)
	if len(leaves) != 1 {
		t.Fatalf("leaves: %v", leaves)
	}
	procs := filepath.Join(rig.Boxes, leaves[0], "cgroup.procs")
	inBox := func() string { b, _ := os.ReadFile(procs); return string(b) }
	rules := rig.Rules(t)
	alive := inBox()
	if alive == "" {
		t.Fatal("the box is empty")
	}
	rig.Run(t, undo...).Want(t, 1, leaves[0], "--force")
	if inBox() != alive || rig.Rules(t) != rules {
		t.Errorf("a refused undo touched the box or its rules; processes %q, were %q", inBox(), alive)
	}
	// Neither does a runner that is dead.
	box.Signal(syscall.SIGKILL)
	box.Wait()
	rig.Run(t, undo...).Want(t, 1, leaves[0], "--force")
	rig.Must(t, append(undo, "--force")...)
	before.Same(t)
}

// TestRulesOutliveNoBox: a box that came after undo had looked keeps its rules and its belt, since
// neither goes before the last process of the last leaf.
func TestRulesOutliveNoBox(t *testing.T) {
	rig.Bare(t)
	rig.Install(t)
	for _, role := range []string{"supervise", "helper", "resolverd"} {
		rig.Only(t, role).Kill()
	}
	leaf := filepath.Join(rig.Boxes, "latecomer")
	mkdir(t, leaf, 0)
	dir, err := os.Open(leaf)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	p := netlab.Start(t, netlab.Spawn{Leaf: int(dir.Fd())}, "netlab-sleep")
	p.Line()
	before := rig.Exact(t)
	ground := linux.Ground{Rel: "minhost"}
	for _, s := range []installer.Step{linux.TableStep{Ground: ground}, linux.BeltStep{Ground: ground}} {
		if err := s.Undo(t.Context(), installer.Record{}); err == nil || !strings.Contains(err.Error(), "latecomer") {
			t.Errorf("undo of %s: %v", s.ID(), err)
		}
	}
	if diff := before.Diff(rig.Exact(t)); len(diff) > 0 {
		t.Errorf("changed under a live box:\n  %s", strings.Join(diff, "\n  "))
	}
}

// TestEditedProgram: bytes that somebody changed since are left, shown, and undo says so.
func TestEditedProgram(t *testing.T) {
	before := rig.Bare(t)
	rig.Install(t)
	edited := "#!/bin/sh\necho mine\n"
	if err := os.WriteFile(rig.Program+".new", []byte(edited), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(rig.Program+".new", rig.Program); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		rig.Run(t, undo...).Want(t, 1, rig.Program, "somebody changed it", "rm "+rig.Program)
		if b, err := os.ReadFile(rig.Program); err != nil || string(b) != edited {
			t.Fatalf("%q %v", b, err)
		}
	}
	if left := before.Diff(rig.Take(t)); len(left) > 8 { // program, state and run folder with journal and lock
		t.Errorf("more is left than the edited file and the journal:\n  %s", strings.Join(left, "\n  "))
	}
	if err := os.Remove(rig.Program); err != nil {
		t.Fatal(err)
	}
	rig.Undo(t)
	before.Same(t)
}

// TestReplacedTable: a running helper takes its table back; without one undo leaves the stranger's.
func TestReplacedTable(t *testing.T) {
	before := rig.Bare(t)
	rig.Install(t)
	stranger := []string{"delete table inet minhost", "add table inet minhost", "add chain inet minhost theirs"}
	ours := func() bool {
		return strings.Contains(rig.Rules(t), "map policyof") && !strings.Contains(rig.Rules(t), "theirs")
	}
	nft(t, stranger...)
	rig.Eventually(t, 2*time.Second, "the helper took its table back", ours)
	rig.Must(t, "verify")
	for _, role := range []string{"supervise", "helper", "resolverd"} {
		rig.Only(t, role).Kill()
	}
	nft(t, stranger...)
	rig.Run(t, undo...).Want(t, 1, "nft list table inet minhost")
	if !strings.Contains(rig.Rules(t), "theirs") {
		t.Error("undo removed the table of somebody else")
	}
	nft(t, "delete table inet minhost")
	rig.Undo(t)
	before.Same(t)
}
