//go:build unix && !linux

package main

import (
	"errors"
	"os"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client/hold"
)

// childRole is the process between run and its program.
func childRole(name string, args []string) (status int, served bool) {
	if name != hold.Command {
		return 0, false
	}
	return hold.Main(args, nil), true
}

// strictWorks: there are no namespaces on this system.
const strictWorks = false

func within(api.NetPlan, []string, bool, bool) ([]byte, error) {
	return nil, errors.New("there are no namespaces on this system")
}

func hiddenPaths(...string) []string { return nil }

func advice() (cause, next string) { return "", "" }

// screen is a terminal of the program's own, which nothing here needs.
type screen struct{}

func openScreen(*bool, *os.File, *os.File) (*screen, error) { return nil, nil }

func (*screen) instead(f *os.File) *os.File { return f }
func (*screen) start()                      {}
func (*screen) enter()                      {}
func (*screen) leave() (was bool)           { return false }
func (*screen) resize()                     {}
func (*screen) finish() (was bool)          { return false }
