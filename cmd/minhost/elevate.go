package main

import (
	"context"
	"errors"
	"os/exec"
	"strings"

	"github.com/gominimal/minhost/installer"
)

// elevator is a program that runs another one as root. ask is its command line on a terminal, quiet
// the one that fails instead of asking; without quiet it is used on a terminal only.
type elevator struct {
	path       string
	ask, quiet []string
}

// elevators in the order in which they are tried. Paths are fixed: the caller's PATH is the
// caller's, and root would run what it names.
var elevators = []elevator{
	{"/usr/bin/sudo", nil, []string{"-n"}},
	{"/usr/bin/doas", nil, []string{"-n"}},
	{"/usr/bin/run0", nil, nil},
	{"/usr/bin/pkexec", nil, nil},
}

// elevate runs the script as root, through a pipe: root executes no file of the operator. The
// script copies the program to a place of root's, compares its sha256 and runs the copy.
func (env *environment) elevate(ctx context.Context, script string) error {
	for _, e := range elevators {
		if _, err := exec.LookPath(e.path); err != nil {
			continue
		}
		args := e.quiet
		if env.onTerminal() {
			args = e.ask
		} else if args == nil {
			continue
		}
		cmd := exec.CommandContext(ctx, e.path, append(args, "/bin/sh", "-s")...)
		cmd.Stdin = strings.NewReader(script)
		cmd.Stdout, cmd.Stderr = env.Stdout, env.Stderr
		err := cmd.Run()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return hinted{errors.New(e.path + " did not finish: " + exit.Error()), fileRoute}
		}
		return err
	}
	why := "none of sudo, doas, run0, pkexec is installed"
	if !env.onTerminal() {
		why = "there is no terminal to ask for a password on"
	}
	return hinted{errors.New("root is needed, and " + why), fileRoute}
}

// fileRoute is how to go on without elevation.
const fileRoute = "minhost finalize-install --show --script > minhost.sh, read it, and run it as root: sh minhost.sh"

// script renders what root runs, for this program.
func (env *environment) script(plan installer.Plan, extra ...string) (string, error) {
	binary, sum, err := thisProgram()
	if err != nil {
		return "", err
	}
	return installer.Script(plan, installer.ScriptInfo{Binary: binary, SHA256: sum, Program: env.Platform.Program, Args: extra})
}
