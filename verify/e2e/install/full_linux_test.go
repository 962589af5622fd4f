package install

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// mount covers a folder for one test.
func mount(t *testing.T, target, kind, options string, flags uintptr) {
	t.Helper()
	if err := unix.Mount(kind, target, kind, flags, options); err != nil {
		t.Fatalf("mount %s: %v", target, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// TestFullDisk: the file system of the journal, of the program or of the run folder has no room, or
// room for a part. One clear error; undo leaves nothing; with room the same command finishes.
func TestFullDisk(t *testing.T) {
	// In blocks of 4 KiB: a folder costs none, a file at least one.
	for dir, sizes := range map[string][]int{"/var/lib": {1, 2}, "/usr/local/lib": {1, 1000}, "/run": {1, 2, 4}} {
		for _, blocks := range sizes {
			t.Run(fmt.Sprintf("%s with %d blocks", dir, blocks), func(t *testing.T) {
				rig.Bare(t)
				mount(t, dir, "tmpfs", fmt.Sprintf("mode=755,nr_blocks=%d", blocks), 0)
				before := rig.Take(t)
				r := rig.Run(t, install...)
				if r.Status == 0 {
					if blocks < 3 {
						t.Fatalf("installed into %d blocks: %v", blocks, r)
					}
					rig.Must(t, "verify")
				} else {
					r.Want(t, 1, "minhost finalize-install --undo")
					// A helper that cannot write its own state cannot write that into the log either.
					if !strings.Contains(r.Stderr, "no space left on device") && !strings.Contains(r.Stderr, "the file system of /run/minhost is full") {
						t.Errorf("no cause: %v", r)
					}
				}
				rig.Undo(t)
				before.Same(t)
				if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "nr_blocks=20000"); err != nil {
					t.Fatal(err)
				}
				rig.Install(t)
				rig.Undo(t)
				before.Same(t)
			})
		}
	}
}

// TestFullThenRoom: what a full disk cut short is finished by the same command, without an undo.
func TestFullThenRoom(t *testing.T) {
	rig.Bare(t)
	mount(t, "/usr/local/lib", "tmpfs", "mode=755,nr_blocks=100", 0)
	before := rig.Take(t)
	rig.Run(t, install...).Want(t, 1, "no space left on device", "run the same command again")
	if names, err := os.ReadDir("/usr/local/lib/minhost"); err != nil || len(names) > 0 {
		t.Errorf("half a program was left: %v %v", names, err)
	}
	if err := unix.Mount("tmpfs", "/usr/local/lib", "tmpfs", unix.MS_REMOUNT, "nr_blocks=20000"); err != nil {
		t.Fatal(err)
	}
	rig.Install(t)
	rig.Undo(t)
	before.Same(t)
}

// TestReadOnly: where root cannot write, nothing at all is begun and the plan says so beforehand.
func TestReadOnly(t *testing.T) {
	for dir, step := range map[string]string{"/usr/local": "program", "/var/lib": "", "/sys/fs/cgroup": "tree"} {
		t.Run(dir, func(t *testing.T) {
			rig.Bare(t)
			if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
					t.Error(err)
				}
			})
			if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
				t.Fatal(err)
			}
			before := rig.Take(t)
			if step != "" {
				p := planOf(t, rig.Cmd{}, 1, operator...)
				if p.states()[step] != "blocked" {
					t.Errorf("the plan does not say it: %v", p.states())
				}
			}
			r := rig.Run(t, install...)
			if r.Status != 1 || !strings.Contains(r.Stderr, "read-only") {
				t.Errorf("want status 1 and read-only: %v", r)
			}
			rig.Run(t, undo...).Want(t, 0)
			before.Same(t)
		})
	}
}
