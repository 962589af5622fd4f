// Command gen writes the Go types of a varlink interface: gen INTERFACE.varlink OUTPUT.go.
//
// It is run by go generate in installer/api, never at build time. It writes types, parameters,
// replies and errors only; neither a client nor a server, since both need contexts, descriptors
// and a strict check that no generator of the library knows.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: gen INTERFACE.varlink OUTPUT.go")
	}
	description, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	source, err := render(string(description))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return os.WriteFile(args[1], source, 0o644)
}
