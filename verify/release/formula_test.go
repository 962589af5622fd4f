package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFormula: Homebrew's formula builds the program as make does, and installs every man page; nothing but
// packages does that, on any system.
func TestFormula(t *testing.T) {
	text, err := os.ReadFile("../../packaging/darwin/minhost.rb")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	const flags = "-s -w"
	for _, want := range []string{flags, "-X main.version="} {
		if !strings.Contains(string(text), want) || !strings.Contains(string(makefile), want) {
			t.Errorf("formula and Makefile do not both have %q", want)
		}
	}
	if !strings.Contains(string(text), `ENV["CGO_ENABLED"] = "0"`) {
		t.Error("the formula builds with cgo")
	}
	pages, err := filepath.Glob("../../packaging/man/*")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, p := range pages {
		section := strings.TrimPrefix(filepath.Ext(p), ".")
		if want := "man" + section + `.install "packaging/man/` + filepath.Base(p) + `"`; !strings.Contains(string(text), want) {
			t.Errorf("the formula lacks: %s", want)
		}
	}
	if strings.Contains(string(text), "service do") || strings.Contains(string(text), "sudo") {
		t.Error("the formula starts something: that is for finalize-install")
	}
}
