package vm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain prints "SKIP vm: <missing thing>" where no machine can be booted, and fails then when
// REQUIRE lists vm.
func TestMain(m *testing.M) {
	err := lacks(booters)
	if err == nil && os.Geteuid() != 0 {
		err = fmt.Errorf("%w: root, to make images", errMissing)
	}
	for _, suite := range suites {
		if err == nil {
			_, err = image(suite)
		}
	}
	switch {
	case errors.Is(err, errMissing):
		_, what, _ := strings.Cut(err.Error(), ": ")
		fmt.Printf("SKIP vm: %s\n", what)
		if slices.Contains(strings.Split(os.Getenv("REQUIRE"), ","), "vm") {
			os.Exit(1)
		}
		os.Exit(0)
	case err != nil:
		fmt.Fprintln(os.Stderr, "vm:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

var suites = []string{"bookworm", "trixie"}

// limit of a machine's whole life: two to four minutes on two cores that do little else.
const limit = 45 * time.Minute

// TestLife: install, use, flush the ruleset, reboot, use, undo. Each check of the guest is a subtest.
func TestLife(t *testing.T) {
	for _, suite := range suites {
		t.Run(suite, func(t *testing.T) {
			dir, err := image(suite)
			if err != nil {
				t.Fatal(err)
			}
			work := t.TempDir()
			share(t, work)
			initrd(t, dir, work)
			ends := 0
			lines, wait := boot(t, dir, work, limit)
			for line := range lines {
				ends += report(t, line)
			}
			if err := wait(); err != nil || ends != 2 && os.Getenv("MINHOST_VM_SCRIPT") == "" {
				console, _ := os.ReadFile(filepath.Join(work, "console")) // for the message only
				t.Errorf("%d of 2 boots came to their end; qemu: %v\n%s", ends, err, console[max(0, len(console)-4000):])
			}
			if ends == 2 {
				capture(t, work)
			}
		})
	}
}

// report turns a line of the guest into a subtest, and returns 1 for the last line of a boot.
func report(t *testing.T, line string) int {
	kind, text, _ := strings.Cut(line, " ")
	switch kind {
	case "PASS":
		t.Run(text, func(*testing.T) {})
	case "FAIL":
		name, why, _ := strings.Cut(text, "\t")
		t.Run(name, func(t *testing.T) { t.Error(strings.ReplaceAll(why, " | ", "\n")) })
	case "SKIP":
		name, why, _ := strings.Cut(text, "\t")
		t.Run(name, func(t *testing.T) { t.Skip(why) })
	case "END":
		return 1
	default:
		t.Log(text)
	}
	return 0
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
