package host_test

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

func TestStore(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(root string)
		then   func(root string)
	}{
		"folder is ours":  {},
		"folder is there": {before: func(root string) { hosttest.Put(t, root, "/lib/state/theirs", "x", 0o644) }},
		"empty folder":    {before: func(root string) { os.MkdirAll(root+"/lib/state", 0o700) }},
	} {
		d, root := fresh(t, nil)
		hosttest.Put(t, root, "/lib/other", "x", 0o644)
		if tc.before != nil {
			tc.before(root)
		}
		before := hosttest.Snapshot(root)
		s := host.NewStore(d, "/lib/state/journal.json")
		if _, err := s.Load(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: load of nothing: %v", name, err)
		}
		for _, v := range []string{"1", "2"} {
			if err := s.Save([]byte(v)); err != nil {
				t.Fatal(err)
			}
			if b, err := s.Load(); err != nil || string(b) != v {
				t.Errorf("%s: %q %v", name, b, err)
			}
		}
		if info, _ := d.Lstat("/lib/state/journal.json"); info.Mode.Perm() != 0o600 {
			t.Errorf("%s: mode %v", name, info.Mode)
		}
		for range 2 {
			if err := s.Remove(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if diff := hosttest.Diff(before, hosttest.Snapshot(root)); len(diff) > 0 {
			t.Errorf("%s: %q", name, diff)
		}
	}
}

// TestStoreFolderInUse: somebody put a file into the folder that Save made.
func TestStoreFolderInUse(t *testing.T) {
	d, root := fresh(t, nil)
	s := host.NewStore(d, "/state/journal.json")
	if err := s.Save([]byte("1")); err != nil {
		t.Fatal(err)
	}
	hosttest.Put(t, root, "/state/theirs", "x", 0o644)
	if err := s.Remove(); err != nil {
		t.Fatal(err)
	}
	if names, err := d.ReadDir("/state"); err != nil || !slices.Equal(names, []string{"theirs"}) {
		t.Errorf("left: %v %v", names, err)
	}
}
