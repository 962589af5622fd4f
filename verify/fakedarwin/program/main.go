// Command program is every program of the model of a Mac: it tells the model by which name and with what
// it was called, and prints what the model says. As sudo (set-user-id) it then runs the command as root.
//
// It is for tests only and decides nothing itself.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gominimal/minhost/verify/fakedarwin"
)

func main() { os.Exit(run(filepath.Base(os.Args[0]), os.Args[1:])) }

func run(name string, args []string) int {
	if name == "ls" {
		return list(args)
	}
	call := fakedarwin.Call{Name: name, Args: args}
	if name == "shasum" {
		call.Stdin, _ = io.ReadAll(os.Stdin)
	}
	answer, err := fakedarwin.Ask(call)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: the model: %v\n", name, err)
		return 70
	}
	io.WriteString(os.Stdout, answer.Stdout)
	io.WriteString(os.Stderr, answer.Stderr)
	if name == "sudo" && answer.Code == 0 {
		return sudo(args)
	}
	return answer.Code
}

// list is the ls of Linux, without -T, which is "the whole time" on a Mac.
func list(args []string) int {
	const ls = "/.linux/bin/ls"
	argv := []string{ls, "--full-time"}
	for _, a := range args {
		if len(a) > 1 && a[0] == '-' {
			a = strings.ReplaceAll(a, "T", "")
		}
		argv = append(argv, a)
	}
	fmt.Fprintln(os.Stderr, "ls:", syscall.Exec(ls, argv, os.Environ()))
	return 1
}

// sudo becomes root and the command: "-n" is the one flag that minhost uses, "-v" only asks.
func sudo(args []string) int {
	if len(args) > 0 && args[0] == "-n" {
		args = args[1:]
	}
	if len(args) == 1 && args[0] == "-v" {
		return 0
	}
	env := append(os.Environ(), fmt.Sprintf("SUDO_UID=%d", os.Getuid()))
	if err := syscall.Setgid(0); err != nil {
		fmt.Fprintln(os.Stderr, "sudo:", err)
		return 1
	}
	if err := syscall.Setuid(0); err != nil || len(args) == 0 {
		fmt.Fprintln(os.Stderr, "sudo:", err)
		return 1
	}
	path, err := exec.LookPath(args[0])
	if err == nil {
		err = syscall.Exec(path, args, env)
	}
	fmt.Fprintln(os.Stderr, "sudo:", err)
	return 1
}
