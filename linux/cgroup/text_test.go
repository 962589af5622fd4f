package cgroup

import (
	"slices"
	"strings"
	"testing"
)

func TestValidName(t *testing.T) {
	for _, ok := range []string{"a", "web-1", "7f3a_b", "A9", strings.Repeat("x", 64)} {
		if !ValidName(ok) {
			t.Errorf("%q refused", ok)
		}
	}
	for _, bad := range []string{"", ".", "..", "a/b", "../x", "cgroup.procs", "a b", "a\n", "-rf", "_x", "\x00", "ä", strings.Repeat("x", 65)} {
		if ValidName(bad) {
			t.Errorf("%q accepted", bad)
		}
	}
}

func TestSplitRel(t *testing.T) {
	for _, bad := range []string{"", "/", ".", "..", "../x", "/minhost", "minhost/", "a//b", "a/../b", "a/..", strings.Repeat("a/", 254) + "a"} {
		if parts, err := splitRel(bad); err == nil {
			t.Errorf("%.20q accepted: %d parts", bad, len(parts))
		}
	}
	got, err := splitRel("system.slice/minhost-tree.service")
	if err != nil || len(got) != 2 {
		t.Error(got, err)
	}
}

func TestLeafIn(t *testing.T) {
	for _, c := range []struct{ rel, text, want string }{
		{"minhost", "0::/minhost/boxes/a1\n", "a1"},
		{"minhost", "0::/minhost/boxes/a1/sub/deeper\n", "a1"},
		{"minhost", "0::/minhost/boxes/a1 (deleted)\n", "a1"},
		{"minhost", "0::/minhost/boxes/a1/sub (deleted)\n", "a1"},
		{"minhost", "0::/minhost/boxes\n", ""},
		{"minhost", "0::/minhost/holder\n", ""},
		{"minhost", "0::/minhost/boxesx/a1\n", ""},
		{"minhost", "0::/other/minhost/boxes/a1\n", ""},
		{"minhost", "0::/../minhost/boxes/a1\n", ""},
		{"minhost", "3:net_cls:/minhost/boxes/a2\n0::/minhost/boxes/a1\n", "a1"},
		{"minhost", "3:net_cls:/minhost/boxes/a2\n", ""},
		{"system.slice/minhost-tree.service", "0::/system.slice/minhost-tree.service/boxes/x\n", "x"},
	} {
		if got := leafIn(c.rel, unifiedPath([]byte(c.text))); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.rel, c.text, got, c.want)
		}
	}
}

func TestPopulated(t *testing.T) {
	for text, want := range map[string]bool{"populated 1\nfrozen 0\n": true, "frozen 0\npopulated 0\n": false} {
		if got, err := populated([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if _, err := populated([]byte("frozen 0\n")); err == nil {
		t.Error("no line, no error")
	}
}

func TestPids(t *testing.T) {
	got, err := pids([]byte("12\n0\n7\n"))
	if err != nil || !slices.Equal(got, []int{12, 7}) {
		t.Error(got, err)
	}
	if _, err := pids([]byte("x\n")); err == nil {
		t.Error("garbage accepted")
	}
}
