package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/host/hosttest"
	"github.com/gominimal/minhost/verify"
)

const markerPath = "/var/lib/minhost/reboot.json"

// rebootLab is a host with one row.
func rebootLab(t *testing.T, s verify.State) *lab {
	t.Helper()
	l := newLab(t, &fakeHelper{})
	l.env.Platform.Marker = markerPath
	l.env.Platform.BootID = func() (string, error) { return "boot-1", nil }
	l.env.Observe = func(context.Context) []verify.Row { return []verify.Row{{Name: "range", State: s, Detail: "d"}} }
	hosttest.Put(t, l.root, operatorsPath, "1000\n", 0o600)
	return l
}

func TestBeforeReboot(t *testing.T) {
	l := rebootLab(t, verify.OK)
	if code := l.run(t, "verify", "--before-reboot"); code != 0 {
		t.Fatalf("exit status %d: %s", code, &l.errOut)
	}
	path := filepath.Join(l.root, markerPath)
	b, err := os.ReadFile(path)
	info, err2 := os.Stat(path)
	if err != nil || err2 != nil || info.Mode() != 0o600 || !strings.Contains(string(b), `"boot_id": "boot-1"`) || !strings.Contains(string(b), `"range"`) {
		t.Errorf("%v %v %s", err, err2, b)
	}

	bad := rebootLab(t, verify.Failed)
	if code := bad.run(t, "verify", "--before-reboot"); code != 1 || !strings.Contains(bad.errOut.String(), "not ready now") {
		t.Errorf("a host that is not ready: exit status %d: %s", code, &bad.errOut)
	}
	if _, err := os.Stat(filepath.Join(bad.root, markerPath)); !os.IsNotExist(err) {
		t.Errorf("a host that is not ready left a marker: %v", err)
	}
}

func TestAfterRebootSaysWhatToType(t *testing.T) {
	l := rebootLab(t, verify.OK)
	for _, c := range []struct {
		uid  int
		args []string
		code int
		says string
	}{
		{0, []string{"--after-reboot"}, 1, "sudo minhost verify --before-reboot"},
		{1000, []string{"--after-reboot"}, 1, "sudo minhost verify --after-reboot"},
		{1000, []string{"--before-reboot"}, 1, "sudo minhost verify --before-reboot"},
		{0, []string{"--line"}, 2, "minhost verify --after-reboot"},
		{0, []string{"--wait", "3s"}, 2, "minhost verify --after-reboot"},
		{0, []string{"--before-reboot", "--after-reboot"}, 2, "two boots"},
		{0, []string{"--after-reboot", "--line", "--json"}, 2, "in two ways"},
		{0, []string{"--before-reboot", "--json"}, 2, "no JSON"},
	} {
		l.env.EUID = c.uid
		if code := l.run(t, append([]string{"verify"}, c.args...)...); code != c.code || !strings.Contains(l.errOut.String(), c.says) {
			t.Errorf("%v as %d: exit status %d, %s", c.args, c.uid, code, &l.errOut)
		}
	}
	hosttest.Put(t, l.root, markerPath, "{}", 0o600)
	l.env.EUID = 0
	if code := l.run(t, "verify", "--after-reboot"); code != 1 || !strings.Contains(l.errOut.String(), "read reboot marker") {
		t.Errorf("a marker that is none: exit status %d, %s", code, &l.errOut)
	}
}
