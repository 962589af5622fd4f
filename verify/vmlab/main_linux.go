package vmlab

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gominimal/minhost/verify/netlab"
)

// binEnv names the folder of the built programs for the test process inside the namespaces.
const binEnv = "MINHOST_LAB_BIN"

// Programs that Main builds, for Program.
const (
	// Minhost is the program, Next a later version of it, Faulty one that tests can tell what its kernel lacks.
	Minhost = "minhost"
	Next    = "minhost-next"
	Faulty  = "minhost-faulty"
	// Probe is verify/vmlab/probe.
	Probe = "probe"
	// Musl looks a name up as programs do that are linked to musl; not there without musl-gcc.
	Musl = "musl-lookup"
)

const module = "github.com/gominimal/minhost/"

// Main is for TestMain: os.Exit(vmlab.Main(m, "bookworm")). It makes the roots and builds the
// programs, outside the namespaces where the mirror can be reached, and runs the tests inside of
// netlab's, whose network is then the outside world of every machine. Where that cannot be had it
// prints "SKIP <lane>: <missing thing>" and returns 0, or 1 when REQUIRE lists the lane.
func Main(m *testing.M, suites ...string) int {
	if os.Getenv(binEnv) != "" {
		return netlab.Main(m)
	}
	dir, err := prepare(suites)
	defer os.RemoveAll(dir)
	if errors.Is(err, errMissing) {
		_, what, _ := strings.Cut(err.Error(), ": ")
		lane := laneOf(suites)
		fmt.Printf("SKIP %s: %s\n", lane, what)
		if !slices.Contains(strings.Split(os.Getenv("REQUIRE"), ","), lane) {
			return 0
		}
	}
	if err == nil {
		err = os.Setenv(binEnv, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "vmlab:", err)
		return 1
	}
	return netlab.Main(m)
}

// laneOf is the lane of tests that boot these: roots beyond the first two are the lane cells'.
func laneOf(suites []string) string {
	if slices.ContainsFunc(suites, func(s string) bool { return strings.Contains(s, "-") }) {
		return "cells"
	}
	return "systemd"
}

// prepare returns the folder of the programs.
func prepare(suites []string) (string, error) {
	if missing := netlab.Missing(); missing != "" {
		return "", fmt.Errorf("%w: %s", errMissing, missing)
	}
	for _, suite := range suites {
		if err := makeRoot(suite); err != nil {
			return "", err
		}
	}
	dir, err := os.MkdirTemp("", "minhost-lab-")
	if err == nil {
		// Another user than root runs them too.
		err = os.Chmod(dir, 0o755)
	}
	for _, p := range []struct{ name, pkg, version, tags string }{
		{Minhost, "cmd/minhost", "lab", ""}, {Next, "cmd/minhost", "lab-next", ""}, {Faulty, "cmd/minhost", "lab", "faultpoints"},
		{Probe, "verify/vmlab/probe", "", ""},
	} {
		if err == nil {
			err = build(filepath.Join(dir, p.name), module+p.pkg, p.version, p.tags)
		}
	}
	if err == nil {
		err = buildMusl(filepath.Join(dir, Musl))
	}
	return dir, err
}

//go:embed musl/lookup.c
var muslSource string

// buildMusl does nothing where there is no compiler for it: the tests that want it say so.
func buildMusl(file string) error {
	compiler, err := exec.LookPath("musl-gcc")
	if err != nil {
		return nil
	}
	cmd := exec.Command(compiler, "-static", "-O1", "-o", file, "-x", "c", "-")
	cmd.Stdin = strings.NewReader(muslSource)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", Musl, err, out)
	}
	return nil
}

func build(file, pkg, version, tags string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version, "-tags", tags, "-o", file, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// Built is where a built program is outside.
func Built(name string) string { return filepath.Join(os.Getenv(binEnv), name) }

// Program is where a built program is inside a machine.
func Program(name string) string { return "/run/lab/" + name }
