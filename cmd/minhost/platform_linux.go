//go:build !fakedarwin

package main

import (
	"context"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/linux"
	"github.com/gominimal/minhost/linux/systemd"
	"github.com/spf13/cobra"
)

func newPlatform() platform {
	l := linux.DefaultLayout()
	managerDir := ""
	if serviceManager().Kind == systemd.Systemd {
		managerDir = l.Run // RuntimeDirectory=
	}
	return platform{
		Name: "linux", Socket: l.Socket, Operators: l.Operators, Program: l.Program, Lock: l.Lock, Journal: l.Journal, Marker: l.Marker,
		ManagerDir: managerDir,
		Openers:    [][]string{{"xdg-open"}, {"gio", "open"}, {"wslview"}, {"sensible-browser"}},
		Files:      disk,
		Plan:       planHost,
		BootID:     bootID,
		Parts:      parts,
		Steps: func(_ context.Context, env *environment, d *host.Disk, gate host.Gate) ([]installer.Step, error) {
			return steps(env, l, d, gate)
		},
		Roles:      func(env *environment) []*cobra.Command { return roles(env, l) },
		LiveLeaves: func() ([]string, error) { return linux.Ground{Rel: treeRel(serviceManager())}.LiveLeaves() },
		EndBoxes:   func(ctx context.Context, env *environment) error { return endBoxes(ctx, env) },
	}
}
