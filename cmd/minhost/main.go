// Command minhost is the one program of the project; its roles are subcommands, one file each.
//
// This package reads flags, wires packages together and prints. It does not decide what a host
// needs (package installer and the steps do) nor what a box may reach (installer/lease does).
// Only platform_linux.go, platform_darwin.go and platform_other.go know which system they run on.
package main

import (
	"context"
	"os"
)

func main() {
	if len(os.Args) > 1 {
		// The processes between run and its program: nothing else of this program may run in them.
		if status, served := childRole(os.Args[1], os.Args[2:]); served {
			os.Exit(status)
		}
	}
	os.Exit(run(context.Background(), production(), os.Args[1:]))
}
