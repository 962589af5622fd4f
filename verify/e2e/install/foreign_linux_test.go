package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// TestForeign: what is somebody else's and has our name is refused, named, and not touched; nothing
// else is done either.
func TestForeign(t *testing.T) {
	for _, c := range []struct {
		name       string
		put        func(t *testing.T)
		step, word string
	}{
		{"program", func(t *testing.T) { write(t, rig.Program, "#!/bin/sh\nexit 0\n", 0o755) }, "program", rig.Program},
		{"program is a folder", func(t *testing.T) { mkdir(t, rig.Program, 0) }, "program", rig.Program},
		{"program is a link", func(t *testing.T) {
			mkdir(t, filepath.Dir(rig.Program), 0)
			if err := os.Symlink("/bin/true", rig.Program); err != nil {
				t.Fatal(err)
			}
		}, "program", rig.Program},
		{"folder of another user", func(t *testing.T) { mkdir(t, filepath.Dir(rig.Program), rig.Other) }, "program", filepath.Dir(rig.Program)},
		{"table", func(t *testing.T) {
			nft(t, "add table inet minhost", "add chain inet minhost mine { type filter hook input priority 0; }",
				"add rule inet minhost mine tcp dport 22 accept")
		}, "table", "nft list table inet minhost"},
		{"empty table", func(t *testing.T) { nft(t, "add table inet minhost") }, "table", "nft list table inet minhost"},
		{"cgroup of another user", func(t *testing.T) { mkdir(t, rig.Tree, rig.Other) }, "tree", rig.Tree},
		{"boxes of another user", func(t *testing.T) { mkdir(t, rig.Boxes, rig.Other) }, "tree", "minhost/boxes: owner 4202"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bare := rig.Bare(t)
			c.put(t)
			before := rig.Take(t)
			if len(bare.Diff(before)) == 0 {
				t.Fatal("nothing is in the way")
			}
			r := rig.Run(t, install...)
			if r.Status != 1 || !strings.Contains(r.Stderr, "step "+c.step) || !strings.Contains(r.Stdout+r.Stderr, c.word) {
				t.Errorf("want status 1, step %s and %q: %v", c.step, c.word, r)
			}
			before.Same(t)
			rig.Run(t, undo...).Want(t, 0)
			before.Same(t)
		})
	}
}

// TestNeighbours: what has our name or lies in our folders and does not hinder us is there after undo.
func TestNeighbours(t *testing.T) {
	for name, put := range map[string]func(t *testing.T){
		"file beside the program": func(t *testing.T) { write(t, filepath.Dir(rig.Program)+"/notes", "mine\n", 0o644) },
		"empty state folder":      func(t *testing.T) { mkdir(t, rig.StateDir, 0) },
		"operators from before":   func(t *testing.T) { write(t, rig.Operators, "1234\n", 0o600) },
		"an empty cgroup":         func(t *testing.T) { mkdir(t, rig.Tree, 0) },
		"empty run folder":        func(t *testing.T) { mkdir(t, rig.RunDir, 0) },
		"other tables":            func(t *testing.T) { nft(t, "add table inet mine", "add chain inet mine c", "add table ip minhost") },
	} {
		t.Run(name, func(t *testing.T) {
			rig.Bare(t)
			put(t)
			t.Cleanup(func() {
				for _, family := range []string{"inet mine", "ip minhost"} {
					rig.Cmd{Path: "/usr/sbin/nft"}.Run(t, append([]string{"delete", "table"}, strings.Fields(family)...)...)
				}
			})
			before := rig.Take(t)
			rig.Install(t)
			rig.Undo(t)
			before.Same(t)
		})
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	mkdir(t, filepath.Dir(path), 0)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// mkdir makes a folder and its parents; the last one belongs to uid.
func mkdir(t *testing.T, path string, uid int) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, uid, uid); err != nil {
		t.Fatal(err)
	}
}

func nft(t *testing.T, commands ...string) {
	t.Helper()
	for _, c := range commands {
		rig.Cmd{Path: "/usr/sbin/nft"}.Run(t, strings.Fields(c)...).Want(t, 0)
	}
}
