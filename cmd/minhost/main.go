// Command minhost is the one program of the project; its roles are subcommands, one file each.
//
// This package reads flags, wires packages together and prints. It does not decide what a host
// needs (package installer and the steps do) nor what a box may reach (installer/lease does).
// Only platform_linux.go, platform_darwin.go and platform_other.go know which system they run on.
package main

import (
	"context"
	"os"

	"github.com/gominimal/minhost/installer/client/hold"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == hold.Command {
		// The child that run holds: nothing else of this program may run in it.
		os.Exit(hold.Main(os.Args[2:], nil))
	}
	os.Exit(run(context.Background(), production(), os.Args[1:]))
}
