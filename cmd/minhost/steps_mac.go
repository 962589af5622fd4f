//go:build darwin || fakedarwin

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/gominimal/minhost/darwin"
	"github.com/gominimal/minhost/darwin/launchd"
	"github.com/gominimal/minhost/darwin/loopback"
	"github.com/gominimal/minhost/darwin/resolverfile"
	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/filestep"
	"github.com/gominimal/minhost/installer/operators"
)

// macSteps are the steps of a Mac in the order of apply.
func macSteps(env *environment, l darwin.Layout, edges macEdges, disk *host.Disk, gate host.Gate) ([]installer.Step, error) {
	path, digest, err := thisProgram()
	if err != nil {
		return nil, err
	}
	self, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read this program: %w", err)
	}
	nobody, err := macUID(env, darwin.AnswererUser)
	if err != nil {
		return nil, err
	}
	config, err := darwin.ReadConfig(disk, l.Config)
	if err != nil {
		return nil, err
	}
	run := host.Exec{Gate: gate}
	zone, clock := macZone(), host.SystemClock{}
	control := launchd.Control{Run: run, Clock: clock}
	loop, answerer, helper := darwin.Jobs(l, digest, zone.Server, darwin.Evidence{
		Answerer: macAnswers, Helper: func(ctx context.Context) error { return macHelperAnswers(ctx, env) },
		PortFree: func(context.Context) error { return macPortFree() }, AnswererUID: nobody, Config: config,
		CleanRun: func() error { return macCleanRun(l, disk) },
	})
	return darwin.Order(darwin.Parts{
		Program: filestep.New(disk, filestep.Spec{
			ID: "program", Describe: "copy this program to " + l.Program + " (root-owned: root runs nothing that others can write)",
			Loses: "nothing of minhost runs as root", Path: l.Program, Content: self, Attr: host.Attr{Mode: 0o755},
			Ours: containsModule, KeepNothing: true,
		}),
		Operator: operators.Step{FS: disk, Path: l.Operators, UID: env.For.UID, Name: env.For.Name},
		Range:    macRange(env, edges, gate),
		Loopback: launchd.New(disk, control, loop), Answerer: launchd.New(disk, control, answerer), Helper: launchd.New(disk, control, helper),
		Names: &resolverfile.Step{Zone: zone, FS: disk, System: resolverfile.System{Run: run}, Clock: clock,
			Known: "minhost." + zone.Name, Answers: macAnswers, Asked: macAsked(env), Libc: edges.Libc},
	}), nil
}

// macRange logs its one line whatever the level is: it is all that a boot leaves to read.
func macRange(env *environment, edges macEdges, gate host.Gate) darwin.RangeStep {
	return darwin.RangeStep{
		Keeper: loopback.Keeper{Interfaces: edges.Interfaces(gate), Bind: loopback.Bind, Clock: host.SystemClock{}},
		Boot:   darwin.Boot{Run: host.Exec{}},
		Log:    slog.New(slog.NewTextHandler(env.Stderr, nil)),
	}
}

func macUID(env *environment, name string) (int, error) {
	u, err := env.LookupUser(name)
	if err != nil {
		return 0, fmt.Errorf("account %s: %w", name, err)
	}
	return strconv.Atoi(u.Uid)
}

// askTime bounds one question to a job of ours.
const askTime = 2 * time.Second

// macHelperAnswers asks for the version too: the helper of before an upgrade answers as well.
func macHelperAnswers(ctx context.Context, env *environment) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	c, err := env.Dial(ctx, env.Socket)
	if err != nil {
		return err
	}
	defer c.Close()
	status, err := c.Status(ctx)
	switch {
	case errors.As(err, new(*api.NotAllowed)):
		return nil // it answers; nobody else's business is in the answer
	case err != nil:
		return err
	case status.Version != programVersion():
		return fmt.Errorf("the helper that runs is version %s, this is %s", status.Version, programVersion())
	}
	return nil
}

// macCleanRun removes what the helper wrote, once it has ended.
func macCleanRun(l darwin.Layout, disk *host.Disk) error {
	var errs []error
	for _, dir := range []string{l.Leases, l.Boxes, l.Run} {
		names, err := disk.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		errs = append(errs, err)
		for _, name := range names {
			errs = append(errs, gone(disk.Remove(dir+"/"+name)))
		}
		errs = append(errs, gone(disk.Remove(dir)))
	}
	return errors.Join(errs...)
}
