package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// TestMain makes the test binary the program itself when it is called like it: run starts itself
// again for the child that it holds, and signals and terminals need a process of their own.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		main()
	}
	// A shell that starts tests in the background has them ignore these, and so would all that they
	// start. A signal that is caught is not ignored in a child.
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	os.Exit(elsewhere(m))
}

// elsewhere runs the tests with folders of their own for what run keeps, not those of who tests.
func elsewhere(m *testing.M) int {
	dir, err := os.MkdirTemp("", "minhost")
	for _, name := range []string{"XDG_RUNTIME_DIR", "XDG_STATE_HOME"} {
		err = errors.Join(err, os.Setenv(name, dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	return m.Run()
}
