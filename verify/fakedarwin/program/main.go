// Command program is every program of the model of a Mac: it tells the model by which name and with what
// it was called, and prints what the model says. As sudo (set-user-id) it then runs the command as root.
//
// It is for tests only and decides nothing itself.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gominimal/minhost/verify/fakedarwin"
)

func main() { os.Exit(run(filepath.Base(os.Args[0]), os.Args[1:])) }

func run(name string, args []string) int {
	call := fakedarwin.Call{Name: name, Args: args}
	if name == "plutil" || name == "shasum" {
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

// sudo becomes root and the command: "-n" is the one flag that minhost uses.
func sudo(args []string) int {
	if len(args) > 0 && args[0] == "-n" {
		args = args[1:]
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
	fmt.Fprintln(os.Stderr, "sudo:", syscall.Exec(args[0], args, env))
	return 1
}
