package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gominimal/minhost/installer/api"
)

// findProgram gives the file of a program, as execvp(3) would find it: a name with a slash is a
// path, any other is searched in PATH, where an empty element is the working directory. The
// errors have the statuses 126 and 127.
func findProgram(name, path string) (string, error) {
	var candidates []string
	switch {
	case strings.Contains(name, "/"):
		candidates = []string{name}
	case name != "":
		for _, folder := range filepath.SplitList(path) {
			if folder == "" {
				folder = "."
			}
			candidates = append(candidates, filepath.Join(folder, name))
		}
	}
	var unusable error
	for _, c := range candidates {
		err := executable(c)
		if err == nil {
			return c, nil
		}
		if unusable == nil && !errors.Is(err, fs.ErrNotExist) {
			unusable = err
		}
	}
	if unusable != nil {
		return "", exitError{statusNotExecutable, fmt.Errorf("run %s: %w", api.Text(name), unusable)}
	}
	err := fmt.Errorf("run %s: there is no such program in PATH", api.Text(name))
	if strings.Contains(name, "/") {
		err = fmt.Errorf("run %s: there is no such file", api.Text(name))
	}
	return "", exitError{statusNotFound, err}
}

// executable looks at the mode only; whether this account may execute a file says the kernel.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is a folder")
	case info.Mode()&0o111 == 0:
		return errors.New("it is not executable")
	}
	return nil
}

// boxVariables start with this; those of a box around this one are not the new box's.
const boxVariables = "MINHOST_"

func withoutBox(environ []string) []string {
	var env []string
	for _, v := range environ {
		if !strings.HasPrefix(v, boxVariables) {
			env = append(env, v)
		}
	}
	return env
}

// childEnvironment is the caller's environment with the variables of the box. Its secret is not
// among them: whoever holds it can change the box.
func childEnvironment(environ []string, plan api.PlanOut) []string {
	env := withoutBox(environ)
	for _, v := range []struct{ name, value string }{
		{"NAME", plan.Name}, {"ADDRESS", plan.Address}, {"HOST", plan.HostAddress},
	} {
		if v.value != "" {
			env = append(env, boxVariables+v.name+"="+v.value)
		}
	}
	return append(env, serverVariables(environ, plan)...)
}
