package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const (
	module   = "github.com/gominimal/minhost"
	netlab   = module + "/verify/netlab"
	rig      = module + "/verify/e2e/rig"
	vmlab    = module + "/verify/vmlab"
	vm       = module + "/verify/vmlab/vm"
	cells    = module + "/verify/vmlab/cells"
	inits    = module + "/verify/vmlab/inits"
	apps     = module + "/verify/e2e/apps"
	archtest = module + "/verify/archtest"
)

func lanes() []lane {
	return []lane{
		{"unit", runUnit},
		{"race", runRace},
		{"root", runRoot},
		{"systemd", runSystemd},
		{"vm", runVM},
		{"cells", runCells},
		{"apps", runApps},
		{"lint", runLint},
	}
}

// goPackage is the part of go list -json that sorts a package into a lane.
type goPackage struct {
	ImportPath   string
	TestGoFiles  []string
	XTestGoFiles []string
	TestImports  []string
	XTestImports []string
}

// laneOf sorts packages with tests: vm boots other kernels; cells boots whole systems of many kinds on this
// one, from roots that take minutes to make; apps runs large servers; all others whose tests import vmlab boot
// whole systems too; those that import netlab or the rig on top of it (and netlab itself) need root and the kernel; archtest is
// lint; all others are pure. "" for a package without tests.
func laneOf(p goPackage) string {
	lab := func(path string) bool { return path == netlab || path == rig }
	system := func(path string) bool { return path == vmlab }
	switch {
	case len(p.TestGoFiles)+len(p.XTestGoFiles) == 0:
		return ""
	case p.ImportPath == vm:
		return "vm"
	case p.ImportPath == cells, p.ImportPath == inits:
		return "cells"
	case p.ImportPath == apps:
		return "apps"
	case slices.ContainsFunc(p.TestImports, system), slices.ContainsFunc(p.XTestImports, system):
		return "systemd"
	case p.ImportPath == netlab, slices.ContainsFunc(p.TestImports, lab), slices.ContainsFunc(p.XTestImports, lab):
		return "root"
	case p.ImportPath == archtest:
		return "lint"
	}
	return "unit"
}

func packagesOf(ctx context.Context, lane string) ([]string, error) {
	out, err := output(ctx, "go", "list", "-json=ImportPath,TestGoFiles,XTestGoFiles,TestImports,XTestImports", "./...")
	if err != nil {
		return nil, err
	}
	var found []string
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if laneOf(p) == lane {
			found = append(found, p.ImportPath)
		}
	}
}

func runUnit(ctx context.Context, w io.Writer) (summary, error) {
	packages, err := packagesOf(ctx, "unit")
	if err != nil {
		return summary{}, err
	}
	return goTest(ctx, w, nil, packages, "-timeout=5m")
}

// runRace runs the packages of unit under the race detector. It needs cgo, which nothing else here does, and
// a C compiler. Whole programs under it are verify/e2e/crowd's, in the lane root.
func runRace(ctx context.Context, w io.Writer) (summary, error) {
	if _, err := exec.LookPath("gcc"); err != nil {
		return summary{skips: []outcome{{"lane race", "gcc is not installed"}}}, nil
	}
	packages, err := packagesOf(ctx, "unit")
	if err != nil {
		return summary{}, err
	}
	return goTest(ctx, w, []string{"CGO_ENABLED=1"}, packages, "-race", "-timeout=10m")
}

func runRoot(ctx context.Context, w io.Writer) (summary, error) { return asRoot(ctx, w, "root", "20m") }

// runSystemd makes the roots first when they are not there, which takes minutes.
func runSystemd(ctx context.Context, w io.Writer) (summary, error) {
	return asRoot(ctx, w, "systemd", "30m")
}

// runCells makes larger roots first.
func runCells(ctx context.Context, w io.Writer) (summary, error) {
	return asRoot(ctx, w, "cells", "60m")
}

// runVM makes the images first when they are not there, which takes minutes too.
func runVM(ctx context.Context, w io.Writer) (summary, error) { return asRoot(ctx, w, "vm", "6h") }

func runApps(ctx context.Context, w io.Writer) (summary, error) { return asRoot(ctx, w, "apps", "20m") }

// asRoot runs one package after the other, and never from the cache: the kernel is an input that
// go test does not know. Who is not root but may sudo without a prompt runs the test binaries so.
func asRoot(ctx context.Context, w io.Writer, lane, timeout string) (summary, error) {
	packages, err := packagesOf(ctx, lane)
	if err != nil {
		return summary{}, err
	}
	flags := []string{"-count=1", "-p=1", "-timeout=" + timeout}
	if os.Geteuid() != 0 && exec.CommandContext(ctx, "sudo", "-n", "true").Run() == nil {
		// The tests build programs: they need to find go, which sudo's own PATH often has not.
		flags = append(flags, "-exec=sudo -n --preserve-env=REQUIRE,MINHOST_LAB,MINHOST_VM_SCRIPT,MINHOST_VM_ALL,XDG_CACHE_HOME env PATH="+os.Getenv("PATH"))
	}
	return goTest(ctx, w, nil, packages, flags...)
}

// goTest runs go test with env on top of this program's environment.
func goTest(ctx context.Context, w io.Writer, env, packages []string, flags ...string) (summary, error) {
	if len(packages) == 0 {
		return summary{}, nil
	}
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"test", "-json"}, flags, packages)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = w
	events, err := cmd.StdoutPipe()
	if err != nil {
		return summary{}, err
	}
	if err := cmd.Start(); err != nil {
		return summary{}, err
	}
	s, err := count(events)
	_, _ = io.Copy(io.Discard, events) // after a line that is no JSON: let go test end
	werr := cmd.Wait()
	if err == nil && werr != nil && len(s.failures) == 0 {
		err = fmt.Errorf("go test: %w, though no test failed", werr)
	}
	return s, err
}

// output runs a program and keeps what it said in the error.
func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return stdout.Bytes(), nil
}
