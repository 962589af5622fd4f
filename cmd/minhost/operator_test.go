package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

const operatorsPath = "/var/lib/minhost/operators"

func TestOperators(t *testing.T) {
	l := newLab(t, nil)
	hosttest.Put(t, l.root, operatorsPath, "1001\n\n7\n", 0o600)
	for _, c := range []struct {
		args       []string
		code       int
		out, after string
	}{
		{[]string{"add", "ana"}, 0, "uid 1000 is an operator\n", "7\n1000\n1001\n"},
		{[]string{"add", "1000"}, 0, "nothing to do: uid 1000 is an operator\n", "7\n1000\n1001\n"},
		{[]string{"remove", "ben"}, 0, "uid 1001 is no operator\n", "7\n1000\n"},
		{[]string{"remove", "ben"}, 0, "nothing to do: uid 1001 is no operator\n", "7\n1000\n"},
		{[]string{"list"}, 0, "UID   USER\n7     -\n1000  ana\n", "7\n1000\n"},
		{[]string{"add", "nobody-here"}, 1, "", "7\n1000\n"},
		{[]string{"add", "4294967295"}, 1, "", "7\n1000\n"},
		{[]string{"add", "-1"}, 2, "", "7\n1000\n"},
		{[]string{"remove", "7"}, 0, "uid 7 is no operator\n", "1000\n"},
		{[]string{"remove", "ana"}, 0, "uid 1000 is no operator\n", ""},
	} {
		code := l.run(t, append([]string{"operator"}, c.args...)...)
		got, err := os.ReadFile(filepath.Join(l.root, operatorsPath))
		if err != nil {
			t.Fatal(err)
		}
		if code != c.code || l.out.String() != c.out || string(got) != c.after {
			t.Errorf("%v: exit status %d, out %q, err %q, file %q", c.args, code, l.out.String(), l.errOut.String(), got)
		}
	}
}

func TestOperatorNeedsRoot(t *testing.T) {
	l := newLab(t, nil)
	l.env.EUID = 1000
	for _, args := range [][]string{{"add", "ana"}, {"remove", "ana"}, {"list"}} {
		code := l.run(t, append([]string{"operator"}, args...)...)
		if code != 1 || !strings.Contains(l.errOut.String(), "next: sudo minhost operator "+strings.Join(args, " ")+"\n") {
			t.Errorf("%v: exit status %d, %q", args, code, l.errOut.String())
		}
	}
}

func TestOperatorOnAHostNotPrepared(t *testing.T) {
	l := newLab(t, nil)
	if code := l.run(t, "operator", "add", "ana"); code != 1 || !strings.Contains(l.errOut.String(), "next: minhost finalize-install\n") {
		t.Errorf("exit status %d, %q", code, l.errOut.String())
	}
}

// TestOperatorsFileOfSomebody keeps a file that cannot be understood as it is.
func TestOperatorsFileOfSomebody(t *testing.T) {
	l := newLab(t, nil)
	hosttest.Put(t, l.root, operatorsPath, "1000\nana\n", 0o600)
	if code := l.run(t, "operator", "add", "ben"); code != 1 || !strings.Contains(l.errOut.String(), "line 2") {
		t.Errorf("exit status %d, %q", code, l.errOut.String())
	}
	got, err := os.ReadFile(filepath.Join(l.root, operatorsPath))
	if err != nil || string(got) != "1000\nana\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestOperatorsFileCut cuts the write: the old list stays.
func TestOperatorsFileCut(t *testing.T) {
	l := newLab(t, nil)
	hosttest.Put(t, l.root, operatorsPath, "1000\n", 0o600)
	cut := errors.New("cut")
	l.env.Platform.Files = func() (host.FS, error) {
		return hosttest.OpenDisk(t, l.root, func(string) error { return cut }), nil
	}
	if code := l.run(t, "operator", "add", "ben"); code != 1 {
		t.Errorf("exit status %d", code)
	}
	got, err := os.ReadFile(filepath.Join(l.root, operatorsPath))
	if err != nil || string(got) != "1000\n" {
		t.Errorf("%q, %v", got, err)
	}
}
