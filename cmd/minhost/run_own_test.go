//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOpenOwn: the file of a detached box's output is made or emptied; what a link leads to, or is another account's,
// stays as it is.
func TestOpenOwn(t *testing.T) {
	dir := t.TempDir()
	path, other, link := filepath.Join(dir, "web.log"), filepath.Join(dir, "other"), filepath.Join(dir, "link.log")
	for range 2 {
		f, err := openOwn(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("said\n"); err != nil {
			t.Error(err)
		}
		f.Close()
	}
	if b, err := os.ReadFile(path); string(b) != "said\n" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if err := os.WriteFile(other, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	refused := []string{link, filepath.Join(dir, "fifo")}
	if err := syscall.Mkfifo(refused[1], 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		foreign := filepath.Join(dir, "foreign.log")
		if err := os.WriteFile(foreign, []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(foreign, 1000, 1000); err != nil {
			t.Fatal(err)
		}
		refused = append(refused, foreign)
	}
	for _, p := range refused {
		if f, err := openOwn(p); err == nil {
			f.Close()
			t.Errorf("%s was opened", p)
		}
		if b, err := os.ReadFile(other); string(b) != "kept" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
	}
}
