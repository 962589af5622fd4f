package host_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

func fresh(t *testing.T, gate host.Gate) (hosttest.Disk, string) {
	t.Helper()
	root := hosttest.Root(t)
	return hosttest.OpenDisk(t, root, gate), root
}

func TestWriteFile(t *testing.T) {
	old := syscall.Umask(0o077)
	t.Cleanup(func() { syscall.Umask(old) })
	d, _ := fresh(t, nil)
	for _, mode := range []fs.FileMode{0o600, 0o666, 0o644, 0o755 | fs.ModeSetuid} {
		if err := d.WriteFile("/f", []byte(mode.String()), host.Attr{Mode: mode}); err != nil {
			t.Fatal(err)
		}
		b, err := d.ReadFile("/f")
		info, statErr := d.Lstat("/f")
		if err != nil || statErr != nil || string(b) != mode.String() || info.Settable().Mode != mode || info.UID != 0 {
			t.Errorf("%v: %q %+v %v %v", mode, b, info, err, statErr)
		}
	}
	if names, err := d.ReadDir("/"); err != nil || !slices.Equal(names, []string{"f"}) {
		t.Errorf("in the folder: %v %v", names, err)
	}
}

// TestChangesOfWriteFile fixes the order: the name appears only after bytes, owner and mode are on
// the disk, and the folder is synced after.
func TestChangesOfWriteFile(t *testing.T) {
	gate, tally := hosttest.Count()
	d, _ := fresh(t, gate)
	if err := d.WriteFile("/f", []byte("x"), host.Attr{Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	want := []string{"create /.f.minhost-new", "write /.f.minhost-new", "chmod /.f.minhost-new",
		"sync /.f.minhost-new", "rename /f", "sync /"}
	if got := tally.Changes(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWriteFileReplacesTheFileNotItsBytes(t *testing.T) {
	d, root := fresh(t, nil)
	hosttest.Put(t, root, "/f", "old", 0o644)
	open, err := os.Open(root + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if err := d.WriteFile("/f", []byte("new"), host.Attr{Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 8)
	if n, _ := open.Read(b); string(b[:n]) != "old" {
		t.Errorf("a reader of the old file sees %q", b[:n])
	}
}

// TestNotRegular: what is not a regular file is neither replaced nor read, and a link is not
// followed: the file it points to stays as it is.
func TestNotRegular(t *testing.T) {
	d, root := fresh(t, nil)
	hosttest.Put(t, root, "/target", "theirs", 0o644)
	for name, make := range map[string]func(p string) error{
		"folder":        func(p string) error { return os.Mkdir(p, 0o755) },
		"link":          func(p string) error { return os.Symlink("target", p) },
		"dangling link": func(p string) error { return os.Symlink("none", p) },
		"link outside":  func(p string) error { return os.Symlink("/etc/passwd", p) },
		"fifo":          func(p string) error { return syscall.Mkfifo(p, 0o644) },
	} {
		if err := make(root + "/f"); err != nil {
			t.Fatal(err)
		}
		before := hosttest.Snapshot(root)
		if err := d.WriteFile("/f", []byte("x"), host.Attr{Mode: 0o644}); !errors.Is(err, host.ErrNotRegular) {
			t.Errorf("write %s: %v", name, err)
		}
		if b, err := d.ReadFile("/f"); !errors.Is(err, host.ErrNotRegular) {
			t.Errorf("read %s: %q %v", name, b, err)
		}
		if err := d.Mkdir("/f", host.Attr{Mode: 0o755}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("mkdir over %s: %v", name, err)
		}
		if diff := hosttest.Diff(before, hosttest.Snapshot(root)); len(diff) > 0 {
			t.Errorf("%s: changed %q", name, diff)
		}
		if err := d.Remove("/f"); err != nil {
			t.Errorf("remove %s: %v", name, err)
		}
	}
	if b, err := d.ReadFile("/target"); err != nil || string(b) != "theirs" {
		t.Errorf("target: %q %v", b, err)
	}
}

func TestPathsStayBelowTheRoot(t *testing.T) {
	d, root := fresh(t, nil)
	outside := t.TempDir()
	if err := os.Symlink(outside, root+"/out"); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"/out/f", "relative", "/../f", "/a//b", "/a/./b", "/a/", ""} {
		if err := d.WriteFile(p, []byte("x"), host.Attr{Mode: 0o644}); err == nil {
			t.Errorf("wrote %q", p)
		}
		if err := d.Mkdir(p, host.Attr{Mode: 0o755}); err == nil {
			t.Errorf("made %q", p)
		}
	}
	if names, _ := os.ReadDir(outside); len(names) > 0 {
		t.Errorf("outside: %v", names)
	}
}

// TestCutWrites cuts every edge at each of its changes: the path is as before or as wanted, never
// between; at most one leftover is there, and it is gone after the next try.
func TestCutWrites(t *testing.T) {
	file := host.Content{Name: "in", Data: []byte("x"), Attr: host.Attr{Mode: 0o600}}
	for name, op := range map[string]func(d hosttest.Disk) error{
		"new":         func(d hosttest.Disk) error { return d.WriteFile("/new", []byte("n"), host.Attr{Mode: 0o640}) },
		"replace":     func(d hosttest.Disk) error { return d.WriteFile("/f", []byte("n"), host.Attr{Mode: 0o640}) },
		"mkdir":       func(d hosttest.Disk) error { return d.Mkdir("/d", host.Attr{Mode: 0o755}) },
		"mkdir with":  func(d hosttest.Disk) error { return d.MkdirWith("/d", host.Attr{Mode: 0o755}, file) },
		"remove":      func(d hosttest.Disk) error { return d.Remove("/f") },
		"remove with": func(d hosttest.Disk) error { return d.RemoveWith("/old", "a", "b") },
		"symlink":     func(d hosttest.Disk) error { return d.Symlink("f", "/s") },
	} {
		run := func(gate host.Gate, root string) error { return op(hosttest.OpenDisk(t, root, gate)) }
		make := func() string {
			root := hosttest.Root(t)
			hosttest.Put(t, root, "/f", "old", 0o644)
			hosttest.Put(t, root, "/old/a", "a", 0o600)
			hosttest.Put(t, root, "/old/b", "b", 0o600)
			return root
		}
		root := make()
		before := hosttest.Snapshot(root)
		gate, tally := hosttest.Count()
		if err := run(gate, root); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		after := hosttest.Snapshot(root)
		for n := 1; n <= tally.N(); n++ {
			root := make()
			gate, _ := hosttest.Cut(n)
			if err := run(gate, root); !errors.Is(err, hosttest.ErrCut) {
				t.Errorf("%s cut at %d: %v", name, n, err)
			}
			now := withoutLeftovers(hosttest.Snapshot(root))
			if len(hosttest.Diff(before, now)) > 0 && len(hosttest.Diff(after, now)) > 0 {
				t.Errorf("%s cut at %d is neither before nor after: %q", name, n, hosttest.Diff(before, now))
			}
			if err := run(nil, root); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s again after a cut at %d: %v", name, n, err)
			}
			if diff := hosttest.Diff(after, hosttest.Snapshot(root)); len(diff) > 0 {
				t.Errorf("%s again after a cut at %d: %q", name, n, diff)
			}
		}
	}
}

func withoutLeftovers(s map[string]string) map[string]string {
	for p := range s {
		if strings.Contains(p, ".minhost-new") {
			delete(s, p)
		}
	}
	return s
}

// TestFailedWriteLeavesNothing: a full disk is not a crash.
func TestFailedWriteLeavesNothing(t *testing.T) {
	const temp = "/.f.minhost-new"
	for _, at := range []string{"create " + temp, "write " + temp, "sync " + temp, "rename /f"} {
		d, root := fresh(t, hosttest.Fail(syscall.ENOSPC, func(change string) bool { return change == at }))
		hosttest.Put(t, root, "/f", "old", 0o644)
		before := hosttest.Snapshot(root)
		if err := d.WriteFile("/f", []byte("new"), host.Attr{Mode: 0o644}); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", at, err)
		}
		if diff := hosttest.Diff(before, hosttest.Snapshot(root)); len(diff) > 0 {
			t.Errorf("%s: %q", at, diff)
		}
	}
}

func TestRemove(t *testing.T) {
	d, root := fresh(t, nil)
	if err := d.Remove("/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
	hosttest.Put(t, root, "/dir/f", "x", 0o644)
	hosttest.Put(t, root, "/dir/g", "x", 0o644)
	if err := d.Remove("/dir"); err == nil {
		t.Error("a full folder is removed")
	}
	if err := d.RemoveWith("/dir", "f"); !errors.Is(err, host.ErrInUse) {
		t.Errorf("folder with another file: %v", err)
	}
	if b, err := d.ReadFile("/dir/f"); err != nil || string(b) != "x" {
		t.Errorf("its files are touched: %v", err)
	}
}

func TestTempIn(t *testing.T) {
	root := hosttest.Root(t)
	gate, tally := hosttest.Count()
	d := hosttest.OpenDisk(t, root, gate, host.TempIn(filepath.Dir))
	hosttest.Put(t, root, "/etc/resolver/other", "x", 0o644)
	if err := d.WriteFile("/etc/resolver/f", []byte("x"), host.Attr{Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	for _, c := range tally.Changes() {
		if strings.Contains(c, "/etc/resolver/.") {
			t.Errorf("temporary name in the folder: %s", c)
		}
	}
}

func TestLongNames(t *testing.T) {
	d, root := fresh(t, nil)
	long := "/" + strings.Repeat("n", 255)
	if err := d.WriteFile(long, []byte("x"), host.Attr{Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(long); err != nil || len(hosttest.Snapshot(root)) != 1 {
		t.Errorf("%v %v", err, hosttest.Snapshot(root))
	}
}

func TestReadOnlyIsFalseHere(t *testing.T) {
	d, root := fresh(t, nil)
	hosttest.Put(t, root, "/d/f", "x", 0o644)
	for _, p := range []string{"/", "/d", "/d/f", "/d/none/deeper"} {
		if ro, err := d.ReadOnly(p); ro || err != nil {
			t.Errorf("%s: %v %v", p, ro, err)
		}
	}
}

func TestClock(t *testing.T) {
	start := time.Unix(1000, 0)
	fake := hosttest.NewClock(start)
	if err := fake.Sleep(t.Context(), time.Hour); err != nil || fake.Now() != start.Add(time.Hour) {
		t.Errorf("%v %v", fake.Now(), err)
	}
}
