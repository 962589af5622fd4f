package vmlab

import (
	"os"
	"path/filepath"
	"testing"
)

// Write puts a file into the machine's file system before it boots.
func (m *Machine) Write(path, content string, mode os.FileMode) {
	m.t.Helper()
	p := filepath.Join(m.work, "up", path)
	err := os.MkdirAll(filepath.Dir(p), 0o755)
	if err == nil {
		err = os.WriteFile(p, []byte(content), mode)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// Link puts a symbolic link there, in place of what the root has.
func (m *Machine) Link(path, target string) {
	m.t.Helper()
	p := filepath.Join(m.work, "up", path)
	err := os.MkdirAll(filepath.Dir(p), 0o755)
	if err == nil {
		err = os.Symlink(target, p)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}
