package golden

import (
	"path/filepath"
	"testing"
)

// told keeps that the test failed.
type told struct {
	testing.TB
	failed bool
}

func (t *told) Errorf(string, ...any) { t.failed = true }

func TestCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	*update = true
	Check(t, path, []byte("one\n"))
	*update = false
	for text, want := range map[string]bool{"one\n": false, "one": true, "": true} {
		r := &told{TB: t}
		if Check(r, path, []byte(text)); r.failed != want {
			t.Errorf("%q: failed %v", text, r.failed)
		}
	}
}
