package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// targets are the systems that minhost is built for.
var targets = [...][2]string{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
}

// runLint makes the checks that read the source: vet for each target, shell scripts, and archtest
// (which also checks the format). Each counts as one test.
func runLint(ctx context.Context, w io.Writer) (summary, error) {
	var s summary
	for _, t := range targets {
		env := []string{"GOOS=" + t[0], "GOARCH=" + t[1], "CGO_ENABLED=0"}
		s = s.plus(check(ctx, "go vet "+t[0]+"/"+t[1], env, "go", "vet", "./..."))
	}
	scripts, err := shellScripts(".")
	if err != nil {
		return s, err
	}
	s = s.plus(shellcheck(ctx, scripts))
	packages, err := packagesOf(ctx, "lint")
	if err != nil {
		return s, err
	}
	arch, err := goTest(ctx, w, nil, packages, "-count=1")
	return s.plus(arch), err
}

// check counts one program run: passed when it exits with 0.
func check(ctx context.Context, name string, env []string, program string, args ...string) summary {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return summary{failures: []outcome{{name, fmt.Sprintf("%s%v\n", out, err)}}}
	}
	return summary{passed: 1}
}

func shellcheck(ctx context.Context, scripts []string) summary {
	if len(scripts) == 0 {
		return summary{}
	}
	if _, err := exec.LookPath("shellcheck"); err != nil {
		return summary{skips: []outcome{{"shellcheck " + strings.Join(scripts, " "), "shellcheck is not installed"}}}
	}
	return check(ctx, "shellcheck", nil, "shellcheck", scripts...)
}

// shellScripts finds the files that begin with a line for a shell. A template becomes one only when it is
// filled in: its golden is among these.
func shellScripts(root string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "dist"):
			return filepath.SkipDir
		case !d.Type().IsRegular(), filepath.Ext(path) == ".tmpl":
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		head := make([]byte, 64)
		n, _ := f.Read(head) // an empty or unreadable file is no script
		line, _, _ := bytes.Cut(head[:n], []byte("\n"))
		if bytes.HasPrefix(line, []byte("#!")) && bytes.HasSuffix(line, []byte("sh")) {
			found = append(found, path)
		}
		return nil
	})
	return found, err
}
