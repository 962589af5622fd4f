package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gominimal/minhost/verify/netlab"
)

// binEnv names the folder of the built programs for the test process inside the namespaces.
const binEnv = "MINHOST_E2E_BIN"

const program = "github.com/gominimal/minhost/cmd/minhost"

// Build is one way to build the program.
type Build struct {
	// Name is the file, for Binary.
	Name string
	// Tags and Version are go build's -tags and -X main.version.
	Tags, Version string
	// Race has the race detector in it, which needs cgo: see RaceMissing.
	Race bool
}

// RaceMissing names what a build with the race detector lacks here; empty when nothing.
func RaceMissing() string {
	if os.Getenv(binEnv) != "" { // inside: it is built
		return ""
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		return "gcc, for the race detector"
	}
	return ""
}

// Standard is the program as make build makes it.
const Standard = "minhost"

// Main is for TestMain: os.Exit(rig.Main(m, nil)). It builds the standard program and the ones asked
// for, outside the namespaces where the caches of go are, and runs the tests inside. Children are
// netlab's.
func Main(m *testing.M, builds []Build, children ...netlab.Children) int {
	if os.Getenv(binEnv) != "" || netlab.Missing() != "" {
		return netlab.Main(m, children...)
	}
	dir, err := os.MkdirTemp("", "minhost-e2e-")
	if err == nil {
		defer os.RemoveAll(dir)
		// Another user than root runs them too.
		err = os.Chmod(dir, 0o755)
	}
	for _, b := range append([]Build{{Name: Standard, Version: "e2e"}}, builds...) {
		if err == nil {
			err = b.make(dir)
		}
	}
	if err == nil {
		err = os.Setenv(binEnv, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rig:", err)
		return 1
	}
	return netlab.Main(m, children...)
}

func (b Build) make(dir string) error {
	args := []string{"build", "-trimpath", "-ldflags", strings.TrimSpace("-s -w -X main.version=" + b.Version)}
	if b.Tags != "" {
		args = append(args, "-tags", b.Tags)
	}
	cgo := "CGO_ENABLED=0"
	if b.Race {
		args, cgo = append(args, "-race"), "CGO_ENABLED=1"
	}
	cmd := exec.Command("go", append(args, "-o", filepath.Join(dir, b.Name), program)...)
	cmd.Env = append(os.Environ(), cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", b.Name, err, out)
	}
	return nil
}

// Binary is the path of a built program. Everybody may run it, root alone may write it.
func Binary(name string) string { return filepath.Join(os.Getenv(binEnv), name) }
