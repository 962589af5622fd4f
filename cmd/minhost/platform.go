package main

import (
	"context"
	"fmt"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
)

// platform is what differs between operating systems; newPlatform, one per system, fills it.
type platform struct {
	// Name is the word for the system in messages.
	Name string
	// Socket is where the helper listens.
	Socket string
	// Operators is the file of uids that may call the helper, one a line.
	Operators string
	// Files opens the file system as root sees it.
	Files func() (host.FS, error)
	// Steps are the steps of this host in the order of apply.
	Steps func(context.Context, *environment) ([]installer.Step, error)
	// Helper serves the helper's API until the context ends.
	Helper func(context.Context, *environment) error
	// Plan probes the host: the engine over Steps, without a change and without root.
	Plan func(context.Context, *environment) (installer.Plan, error)
	// Supervise runs helper and answerer where no service manager does, until the context ends.
	Supervise func(context.Context, *environment) error
}

// unsupported is the platform of a system that minhost does not serve: every function fails with
// one clear error.
func unsupported(name string) platform {
	fail := func() error { return fmt.Errorf("minhost does not do this on %s yet", name) }
	return platform{
		Name:      name,
		Files:     func() (host.FS, error) { return nil, fail() },
		Plan:      func(context.Context, *environment) (installer.Plan, error) { return installer.Plan{}, fail() },
		Steps:     func(context.Context, *environment) ([]installer.Step, error) { return nil, fail() },
		Helper:    func(context.Context, *environment) error { return fail() },
		Supervise: func(context.Context, *environment) error { return fail() },
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
