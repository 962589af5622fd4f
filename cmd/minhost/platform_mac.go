//go:build darwin || fakedarwin

package main

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gominimal/minhost/darwin"
	"github.com/gominimal/minhost/darwin/loopback"
	"github.com/gominimal/minhost/darwin/procs"
	"github.com/gominimal/minhost/darwin/resolverfile"
	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/resolverd"
	"github.com/gominimal/minhost/resolverd/probe"
	"github.com/gominimal/minhost/resolverd/zonefile"
	"github.com/gominimal/minhost/verify"
)

// macEdges is what only a Mac's kernel can do, and what stands in for it where the same program runs on
// the model of one (verify/fakedarwin).
type macEdges struct {
	// Interfaces is lo0.
	Interfaces func(host.Gate) loopback.Interfaces
	// Activate takes over the sockets that launchd holds.
	Activate func(names ...string) ([]*os.File, error)
	// CredOf reads who is at the other end of a connected unix socket.
	CredOf func(fd int) (procs.Cred, error)
	// PIDOf reads the pid of a process descriptor; nil where there are none.
	PIDOf func(*os.File) (int, error)
	// Libc looks a name up by getaddrinfo; nil on the model, where that would be another system's.
	Libc func(context.Context, string) (netip.Addr, error)
}

// macPlatform is the platform of a Mac, over its edges.
func macPlatform(edges macEdges) platform {
	l := darwin.DefaultLayout()
	boot := darwin.Boot{Run: host.Exec{}}
	return platform{
		Name: "darwin", Socket: l.Socket, Operators: l.Operators, Program: l.Program, Lock: l.Lock, Journal: l.Journal, Marker: l.Marker,
		Openers:     [][]string{{"/usr/bin/open"}},
		DiskOptions: []host.DiskOption{host.TempIn(resolverfile.Temp)},
		Files:       disk,
		Plan:        planHost,
		BootID:      func() (string, error) { return boot.ID(context.Background()) },
		Parts:       macParts(l, boot),
		Steps: func(ctx context.Context, env *environment, d *host.Disk, gate host.Gate) ([]installer.Step, error) {
			return macSteps(env, l, edges, d, gate)
		},
		Roles:      func(env *environment) []*cobra.Command { return macRoles(env, l, edges) },
		LiveLeaves: func() ([]string, error) { return macLive(l) },
		EndBoxes:   func(ctx context.Context, env *environment) error { return macEndBoxes(ctx, env, l) },
		Observe:    func(ctx context.Context) []verify.Row { return macObserve(ctx, l) },
	}
}

// macObserve has no row for the box view: no lookup of a box is redirected on a Mac.
func macObserve(ctx context.Context, l darwin.Layout) []verify.Row {
	return []verify.Row{macRelease(ctx), verify.Range(ctx, verify.Bind), verify.Answer(ctx, "lookups", verify.AnswererAddress, probe.Check), macRuns(ctx, l.Program)}
}

// macRelease is no check: who reads the report wants to know of which macOS it is.
func macRelease(ctx context.Context) verify.Row {
	row := verify.Row{Name: "system", State: verify.OK}
	var err error
	if row.Detail, err = darwin.Release(ctx, host.Exec{}); err != nil {
		row.State, row.Detail, row.Next = verify.Unknown, err.Error(), "sw_vers"
	}
	return row
}

// macRuns starts the installed program. macOS kills one whose signature it does not believe (overwritten in
// place, on a list of XProtect) before its first instruction.
func macRuns(ctx context.Context, program string) verify.Row {
	row := verify.Row{Name: "program runs", State: verify.OK}
	r, err := host.Exec{}.Run(ctx, host.Command{Path: program, Args: []string{"--version"}, Reads: true, Timeout: 10 * time.Second})
	var exit *host.ExitError
	switch {
	case err == nil:
		row.Detail = program + " is " + strings.TrimSpace(string(r.Stdout))
		return row
	case errors.As(err, &exit) && exit.Code < 0:
		row.Detail = program + " is killed by the system (" + exit.Status + "): its signature is not believed, or XProtect knows it"
		row.Next = "codesign -dv " + program + "; then download minhost again and run: minhost finalize-install"
	default:
		row.Detail, row.Next = err.Error(), "minhost finalize-install"
	}
	row.State, row.Loses = verify.Failed, "no job of minhost runs"
	return row
}

// macZone is what the resolver file says.
func macZone() resolverfile.Zone {
	return resolverfile.Zone{
		Name:   zonefile.Origin[:len(zonefile.Origin)-1],
		Server: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), resolverd.DefaultPort),
	}
}
