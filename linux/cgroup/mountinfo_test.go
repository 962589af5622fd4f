package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindMountSamples(t *testing.T) {
	want := map[string]struct {
		mount Mount
		err   error
	}{
		"mountinfo-01-unified-nsdelegate.txt":              {mount: Mount{Point: "/sys/fs/cgroup", NSDelegate: true}},
		"mountinfo-02-hybrid.txt":                          {mount: Mount{Point: "/sys/fs/cgroup/unified", NSDelegate: true, Hybrid: true, NetClass: true}},
		"mountinfo-04-container-cgroupns-ro.txt":           {err: ErrReadOnly},
		"mountinfo-06-trap-unified-without-nsdelegate.txt": {mount: Mount{Point: "/sys/fs/cgroup"}},
		"mountinfo-07-v1-only.txt":                         {err: ErrNoMount},
	}
	files, err := filepath.Glob("testdata/mountinfo-*")
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d samples, %d expectations, %v", len(files), len(want), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		w, ok := want[filepath.Base(f)]
		if !ok {
			t.Errorf("%s: no expectation", f)
		}
		got, err := FindMount(string(text))
		if !errors.Is(err, w.err) || (w.err == nil && got != w.mount) {
			t.Errorf("%s: %+v, %v; want %+v, %v", f, got, err, w.mount, w.err)
		}
	}
}

// Lines that a plain reader of fields gets wrong (CASES B08).
func TestFindMountLines(t *testing.T) {
	const plain = "29 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	for _, c := range []struct {
		name, text, point string
		err               error
	}{
		{"no optional field", plain, "/sys/fs/cgroup", nil},
		{"three optional fields", "29 25 0:26 / /c rw shared:9 master:3 unbindable - cgroup2 none rw\n", "/c", nil},
		{"escapes", `29 25 0:26 / /run/my\040c\134g rw - cgroup2 none rw`, `/run/my c\g`, nil},
		{"escape cut short", `29 25 0:26 / /run/c\04 rw - cgroup2 none rw`, `/run/c\04`, nil},
		{"empty source", "29 25 0:26 / /c rw - cgroup2  rw\n", "/c", nil},
		{"type as source only", "29 25 0:26 / /c rw - tmpfs cgroup2 rw\n", "", ErrNoMount},
		{"part of the tree", "29 25 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "", ErrNotRoot},
		{"above our namespace", "29 25 0:26 /.. /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "", ErrNotRoot},
		{"nsdelegate first", plain + "30 25 0:27 / /c rw - cgroup2 none rw,nsdelegate\n", "/c", nil},
		{"usual place first", "31 25 0:26 / /var/lib/x/y/sys rw - cgroup2 none rw\n" + plain, "/sys/fs/cgroup", nil},
		{"deepest", plain + "30 29 0:26 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n", "/sys/fs/cgroup/unified", nil},
		{"read-only copy beside it", "28 25 0:26 / /sys/fs/cgroup ro - cgroup2 none rw\n30 25 0:26 / /c rw - cgroup2 none rw\n", "/c", nil},
		{"stacked on", plain + "30 29 0:30 / /sys/fs/cgroup rw - tmpfs none rw\n", "", ErrCovered},
		{"parent hidden", "25 20 0:20 / /sys rw - sysfs s rw\n" + plain + "30 25 0:30 / /sys/fs rw - tmpfs none rw\n", "", ErrCovered},
		{"grandparent hidden", "25 20 0:20 / /a/b rw - sysfs s rw\n29 25 0:26 / /a/b/c rw - cgroup2 n rw\n30 20 0:30 / /a rw - tmpfs none rw\n", "", ErrCovered},
		{"neighbour with a longer name", "30 25 0:30 / /sys/fs/cg rw - tmpfs none rw\n" + plain, "/sys/fs/cgroup", nil},
		{"not mountinfo", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "", ErrNoMount},
	} {
		got, err := FindMount(c.text)
		if !errors.Is(err, c.err) || got.Point != c.point {
			t.Errorf("%s: %q, %v; want %q, %v", c.name, got.Point, err, c.point, c.err)
		}
	}
}

// The cause names the mount, so that the operator knows which one to look at.
func TestFindMountCauseNamesMount(t *testing.T) {
	_, err := FindMount("29 25 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n")
	if err == nil || !strings.HasPrefix(err.Error(), "/sys/fs/cgroup: ") {
		t.Error(err)
	}
}

func FuzzFindMount(f *testing.F) {
	f.Add("29 25 0:26 / /sys/fs/cgroup\\040 rw - cgroup2 cgroup2 rw\n")
	f.Add("29 29 0:26 / / rw - cgroup2\n30 29 - - - -")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := FindMount(text)
		if (err == nil) != (m != Mount{}) {
			t.Errorf("%+v, %v", m, err)
		}
	})
}
