package standalone

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLogTrim(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.file.Close()
	// A child has the file open on its own.
	child, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	say := func(w interface{ Write([]byte) (int, error) }, s string) {
		t.Helper()
		if _, err := w.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want, wantOld string) {
		t.Helper()
		got, err := os.ReadFile(path)
		old, _ := os.ReadFile(path + ".1")
		if err != nil || string(got) != want || string(old) != wantOld {
			t.Fatalf("log %q, before it %q; want %q, %q", got, old, want, wantOld)
		}
	}
	say(l, "one\n")
	say(child, "two\n")
	if err := l.trim(8); err != nil {
		t.Fatal(err)
	}
	check("one\ntwo\n", "")
	say(child, "three\n")
	if err := l.trim(8); err != nil {
		t.Fatal(err)
	}
	check("", "o\nthree\n")
	say(child, "four\n")
	say(l, "five\n")
	check("four\nfive\n", "o\nthree\n")
	if info, err := os.Stat(path + ".1"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
