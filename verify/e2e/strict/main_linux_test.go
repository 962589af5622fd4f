package strict

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

const probeEnv = "STRICT_PROBE"

func TestMain(m *testing.M) {
	if os.Getenv("MINHOST_TAP_FD") != "" {
		os.Exit(tapSwitch())
	}
	if os.Getenv(probeEnv) != "" {
		os.Exit(probe(os.Args[1:]))
	}
	os.Exit(rig.Main(m, nil))
}

// prober copies this test binary to where every account may run it.
func prober(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/usr/local", "strict")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b, err := os.ReadFile("/proc/self/exe")
	path := filepath.Join(dir, "probe")
	if err := errors.Join(err, os.Chmod(dir, 0o755), os.WriteFile(path, b, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

// boxed runs a probe in a deny-all box of the user, and returns what it said and where it ran.
func boxed(t *testing.T, flags []string, program string, args ...string) rig.Result {
	t.Helper()
	all := append(append([]string{"run", "--egress", "deny"}, flags...), "--", program)
	return rig.Cmd{UID: rig.User, Env: []string{probeEnv + "=1"}}.Run(t, append(all, args...)...)
}

// said is the last line of a probe.
func said(r rig.Result) string {
	lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
	return lines[len(lines)-1]
}
