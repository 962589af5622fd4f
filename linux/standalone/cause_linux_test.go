package standalone

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLastError(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if got := cause(log); got != "" {
		t.Errorf("no log: %q", got)
	}
	text := "time=x level=INFO msg=begins\nminhost: helper: first\n" + strings.Repeat("time=x level=INFO msg=more\n", 100) +
		"minhost: helper: write /run/minhost/zone: no space left on device\ntime=x level=WARN msg=ended\n"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := cause(log); got != ": helper: write /run/minhost/zone: no space left on device" {
		t.Errorf("%q", got)
	}
}
