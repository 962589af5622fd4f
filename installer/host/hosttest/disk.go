package hosttest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gominimal/minhost/installer/host"
)

// Root makes an empty folder that stands for "/". It lies in memory where that can be had: the
// steps sync after every change, and a real disk would make CutEverywhere slow.
func Root(t testing.TB) string {
	t.Helper()
	base := "/dev/shm"
	if fi, err := os.Stat(base); err != nil || !fi.IsDir() {
		base = os.TempDir()
	}
	dir, err := os.MkdirTemp(base, "hosttest-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Put writes a file below root as somebody who came before minhost; folders are made 0755.
func Put(t testing.TB, root, path, content string, mode os.FileMode) {
	t.Helper()
	p := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(p, mode); err != nil {
		t.Fatal(err)
	}
}

// Disk is a host.Disk on which the user of the test counts as root, so that steps which write
// root's files can be tested without being root. For root itself it changes nothing.
type Disk struct {
	*host.Disk
	uid, gid int
}

var _ host.StoreFS = Disk{}

// OpenDisk opens root; the gate may be nil.
func OpenDisk(t testing.TB, root string, gate host.Gate, options ...host.DiskOption) Disk {
	t.Helper()
	d, err := host.OpenDisk(root, gate, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return Disk{Disk: d, uid: os.Getuid(), gid: os.Getgid()}
}

// Lstat shows the test's user as root.
func (d Disk) Lstat(path string) (host.Info, error) {
	info, err := d.Disk.Lstat(path)
	if err == nil && info.UID == d.uid {
		info.UID = 0
	}
	if err == nil && info.GID == d.gid {
		info.GID = 0
	}
	return info, err
}

// WriteFile gives root's files to the test's user.
func (d Disk) WriteFile(path string, data []byte, attr host.Attr) error {
	return d.Disk.WriteFile(path, data, d.real(attr))
}

// Mkdir gives root's folders to the test's user.
func (d Disk) Mkdir(path string, attr host.Attr) error {
	return d.Disk.Mkdir(path, d.real(attr))
}

// MkdirWith is Mkdir with files.
func (d Disk) MkdirWith(path string, attr host.Attr, files ...host.Content) error {
	mine := make([]host.Content, len(files))
	for i, f := range files {
		f.Attr = d.real(f.Attr)
		mine[i] = f
	}
	return d.Disk.MkdirWith(path, d.real(attr), mine...)
}

func (d Disk) real(a host.Attr) host.Attr {
	if a.UID == 0 {
		a.UID = d.uid
	}
	if a.GID == 0 {
		a.GID = d.gid
	}
	return a
}
