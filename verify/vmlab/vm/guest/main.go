//go:build linux

// Command guest is what runs inside a virtual machine of the lab: as the only program of its initial
// ram disk (it loads the disk's drivers and starts the distribution's own init, or runs tests of single
// packages in its place), as the service that installs, tries and removes minhost, and as the program in
// boxes that tries to reach others.
//
//	guest lab               both boots of the test; prints a line each to the second serial port
//	guest serve HOST...     echo servers, and names where there is a HOST "names"
//	guest try TARGET...     one line each: TARGET and what happened
//	guest storm HOST...     tries to reach each for ever, by every protocol; counts on standard output
//
// It knows minhost by its command line and decides nothing about it that an admin could not see.
package main

import (
	"fmt"
	"os"
)

func main() {
	if os.Getpid() == 1 {
		fmt.Fprintln(os.Stderr, "guest init:", boot())
		os.Exit(1)
	}
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "guest: want lab, serve or try")
		os.Exit(2)
	}
	switch verb, args := os.Args[1], os.Args[2:]; verb {
	case "lab":
		lab()
	case "serve":
		fmt.Fprintln(os.Stderr, "guest serve:", serve(args))
		os.Exit(1)
	case "try":
		try(args)
	case "storm":
		storm(args)
	default:
		fmt.Fprintf(os.Stderr, "guest: no verb %q\n", verb)
		os.Exit(2)
	}
}
