package fakedarwin

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gominimal/minhost/verify/netlab"
)

// TestMistakes plants each mistake in a copy of its file, and wants the named test to turn red: a table
// of mistakes that nobody plants proves nothing.
func TestMistakes(t *testing.T) {
	for _, m := range slices.Concat(mistakes, lookups) {
		t.Run(m.what, func(t *testing.T) {
			t.Parallel()
			m.plant(t)
		})
	}
}

// TestMistakesOfAnInstallation plants those that take a whole Mac to show.
func TestMistakesOfAnInstallation(t *testing.T) {
	if missing := netlab.Missing(); missing != "" {
		t.Skip("SKIP netns: " + missing)
	}
	for _, m := range asRoot {
		t.Run(m.what, m.plant)
	}
}

func (m mistake) plant(t *testing.T) {
	module, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(module, m.file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		t.Fatalf("%s has %d times what the mistake replaces: bring the table up to date", m.file, n)
	}
	dir := t.TempDir()
	planted, overlay := filepath.Join(dir, "planted.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(module, m.file): planted}})
	if err != nil {
		t.Fatal(err)
	}
	for path, b := range map[string][]byte{planted: []byte(strings.Replace(string(text), m.old, m.new, 1)), overlay: replace} {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-ldflags=-s -w", "-overlay", overlay, "-run", "^"+m.test+"$", m.pkg)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "MINHOST_MAC_OVERLAY="+overlay)
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		t.Errorf("%s is green with the mistake in it", m.test)
	case strings.Contains(string(out), "[build failed]") || strings.Contains(string(out), "[setup failed]"):
		t.Errorf("the mistake does not compile:\n%s", out)
	case !strings.Contains(string(out), "--- FAIL: "+m.test):
		t.Errorf("%s did not say so, something else did:\n%s", m.test, out)
	}
}
