package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackageLists: every file that packaging/nfpm.yaml names is there, and every manual page, and every file of
// sysusers.d and tmpfiles.d, is in the package, at its place.
func TestPackageLists(t *testing.T) {
	const root = "../../"
	text, err := os.ReadFile(root + "packaging/nfpm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dst, src := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "- "), ": ")
		value = strings.TrimSpace(value)
		switch key {
		case "src":
			src = value
		case "dst":
			dst[src] = value
		case "postinstall", "preremove", "postremove":
			src = value
		default:
			continue
		}
		if src != "${PROGRAM}" {
			if _, err := os.Stat(root + src); err != nil {
				t.Error(err)
			}
		}
	}
	if dst["${PROGRAM}"] != "/usr/bin/minhost" {
		t.Errorf("the program goes to %q", dst["${PROGRAM}"])
	}
	want := map[string]string{}
	for pattern, to := range map[string]string{
		"packaging/man/*.7": "/usr/share/man/man7/", "packaging/man/*.8": "/usr/share/man/man8/",
		"packaging/sysusers.d/*": "/usr/lib/sysusers.d/", "packaging/tmpfiles.d/*": "/usr/lib/tmpfiles.d/",
	} {
		files, err := filepath.Glob(root + pattern)
		if err != nil || len(files) == 0 {
			t.Errorf("%s: %v, %v", pattern, files, err)
		}
		for _, f := range files {
			want[strings.TrimPrefix(f, root)] = to + filepath.Base(f)
		}
	}
	for f, to := range want {
		if dst[f] != to {
			t.Errorf("%s goes to %q, want %q", f, dst[f], to)
		}
	}
}
