package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/verify"
	"github.com/gominimal/minhost/verify/reboot"
)

// platform is what differs between operating systems; newPlatform, one per system, fills it.
type platform struct {
	// Name is the word for the system in messages.
	Name string
	// Socket is where the helper listens.
	Socket string
	// Operators is the file of uids that may call the helper, one a line.
	Operators string
	// Program is the root-owned copy that root executes; Lock and Journal are apply's and undo's.
	Program, Lock, Journal string
	// Marker is what verify --before-reboot keeps, in the folder of the journal.
	Marker string
	// ManagerDir is a folder that the service manager makes at boot because a unit of minhost says so: it
	// goes with the units. Empty where there is none.
	ManagerDir string
	// Openers are the programs that show a URL in a browser, with their arguments, best first.
	Openers [][]string
	// DiskOptions say how files are written here.
	DiskOptions []host.DiskOption
	// Observe makes the checks of verify that need neither root nor the helper; nil means verify.Observe.
	Observe func(context.Context) []verify.Row
	// Files opens the file system as root sees it.
	Files func() (host.FS, error)
	// Plan probes the host: the engine over Steps, without a change and without root.
	Plan func(context.Context, *environment) (installer.Plan, error)
	// BootID names this boot.
	BootID func() (string, error)
	// Parts tells when each part of minhost was ready in this boot; an error says why nobody knows.
	Parts func(context.Context) ([]reboot.Part, error)
	// Steps are the steps of this host in the order of apply; every change asks the gate.
	Steps func(context.Context, *environment, *host.Disk, host.Gate) ([]installer.Step, error)
	// Roles are the hidden verbs that the service manager calls.
	Roles func(*environment) []*cobra.Command
	// LiveLeaves names what the kernel knows of live boxes, for when no helper can tell; as root.
	LiveLeaves func() ([]string, error)
	// EndBoxes ends every live box, for undo --force; as root.
	EndBoxes func(context.Context, *environment) error
}

// unsupported is the platform of a system that minhost does not serve: every function fails with
// one clear error.
func unsupported(name string) platform {
	fail := func() error { return fmt.Errorf("minhost does not do this on %s yet", name) }
	return platform{
		Name:   name,
		Files:  func() (host.FS, error) { return nil, fail() },
		Plan:   func(context.Context, *environment) (installer.Plan, error) { return installer.Plan{}, fail() },
		BootID: func() (string, error) { return "", fail() },
		Parts:  func(context.Context) ([]reboot.Part, error) { return nil, fail() },
		Steps: func(context.Context, *environment, *host.Disk, host.Gate) ([]installer.Step, error) {
			return nil, fail()
		},
		Roles:      func(*environment) []*cobra.Command { return nil },
		LiveLeaves: func() ([]string, error) { return nil, nil },
		EndBoxes:   func(context.Context, *environment) error { return fail() },
	}
}

// disk opens the file system of this host; no change to it is gated.
func disk() (host.FS, error) {
	d, err := host.OpenDisk("/", nil)
	if err != nil {
		return nil, err
	}
	return d, nil
}
