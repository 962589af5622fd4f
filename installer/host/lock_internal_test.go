package host

import (
	"errors"
	"os"
	"testing"
)

// TestGrabOfARemovedFile: between open and lock the holder removed the file. A lock on a file
// without a name excludes nobody.
func TestGrabOfARemovedFile(t *testing.T) {
	root := t.TempDir()
	d, err := OpenDisk(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for name, change := range map[string]func() error{
		"stays":    func() error { return nil },
		"removed":  func() error { return os.Remove(root + "/lock") },
		"replaced": func() error { return os.Rename(root+"/new", root+"/lock") },
	} {
		for _, n := range []string{"/lock", "/new"} {
			if err := os.WriteFile(root+n, lockText(0, false), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.OpenFile(root+"/lock", os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		l := &Lock{disk: d, file: f, path: "/lock"}
		if err := l.grab("lock"); (name == "stays") != (err == nil) || (err != nil && !errors.Is(err, errMoved)) {
			t.Errorf("%s: %v", name, err)
		}
		f.Close()
	}
}
