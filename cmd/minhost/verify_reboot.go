package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/verify"
	"github.com/gominimal/minhost/verify/reboot"
)

// rebootFlags are the flags of verify that have to do with a reboot.
type rebootFlags struct {
	before, after, line bool
	wait                time.Duration
}

func (f *rebootFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.before, "before-reboot", false, "as root: keep what is expected of this host after a reboot")
	cmd.Flags().BoolVar(&f.after, "after-reboot", false, "as root: compare with what was expected")
	cmd.Flags().BoolVar(&f.line, "line", false, "with --after-reboot: print one line")
	cmd.Flags().DurationVar(&f.wait, "wait", 0, "with --after-reboot: look again until all is well, at most that long")
}

func (f rebootFlags) check(asJSON bool) error {
	wrong := ""
	switch {
	case f.before && f.after:
		wrong = "--before-reboot and --after-reboot are for two boots"
	case f.before && asJSON:
		wrong = "--before-reboot prints no JSON"
	case (f.line || f.wait != 0) && !f.after:
		wrong = "--line and --wait go with --after-reboot"
	case f.line && asJSON:
		wrong = "--line and --json print the same in two ways"
	default:
		return nil
	}
	return exitError{statusUsage, hinted{errors.New(wrong), "minhost verify --after-reboot"}}
}

// rebootPause is the time between two looks of --wait.
const rebootPause = 500 * time.Millisecond

// host of now, as far as a reboot is concerned.
func (env *environment) rebootNow(ctx context.Context) (now reboot.Now, err error) {
	now.Version, now.Report = programVersion(), env.verify(ctx)
	if now.BootID, err = env.Platform.BootID(); err != nil {
		return now, fmt.Errorf("boot id: %w", err)
	}
	plan, err := env.Platform.Plan(ctx, env)
	now.Digest = reboot.Digest(plan)
	return now, err
}

// forgetMarker is part of undo.
func (env *environment) forgetMarker(files host.FS) error {
	if env.Platform.Marker == "" {
		return nil
	}
	return gone(files.Remove(env.Platform.Marker))
}

// forRoot: the marker lies in root's folder.
func (env *environment) forRoot(flag string) error {
	if env.EUID != 0 {
		return hinted{errors.New(flag + " is for root"), "sudo minhost verify " + flag}
	}
	return nil
}

// beforeReboot stores what is expected. A host that is not ready leaves an older marker alone.
func (env *environment) beforeReboot(ctx context.Context) error {
	if err := env.forRoot("--before-reboot"); err != nil {
		return err
	}
	now, err := env.rebootNow(ctx)
	if err != nil {
		return err
	}
	m, err := reboot.Expect(now.Report, now.BootID, now.Version, now.Digest, time.Now())
	if err != nil {
		return hinted{err, "minhost verify"}
	}
	b, err := m.Encode()
	if err != nil {
		return err
	}
	files, err := env.Platform.Files()
	if err != nil {
		return err
	}
	if err := files.WriteFile(env.Platform.Marker, b, host.Attr{Mode: 0o600}); err != nil {
		return fmt.Errorf("keep the expectation: %w", err)
	}
	_, err = fmt.Fprintf(env.Stdout, "%d things are expected after a reboot; then: minhost verify --after-reboot\n", len(m.Expect))
	return err
}

// afterReboot compares and prints.
func (env *environment) afterReboot(ctx context.Context, f rebootFlags, asJSON bool) error {
	if err := env.forRoot("--after-reboot"); err != nil {
		return err
	}
	files, err := env.Platform.Files()
	if err != nil {
		return err
	}
	b, err := files.ReadFile(env.Platform.Marker)
	if errors.Is(err, fs.ErrNotExist) {
		return hinted{errors.New("nothing was expected: there is no " + env.Platform.Marker), "sudo minhost verify --before-reboot"}
	}
	if err != nil {
		return err
	}
	m, err := reboot.Decode(b)
	if err != nil {
		return hinted{err, "sudo minhost verify --before-reboot"}
	}
	after, err := env.settled(ctx, m, f.wait)
	if err != nil {
		return err
	}
	switch {
	case asJSON:
		err = writeJSON(env.Stdout, after)
	case f.line:
		err = after.WriteLine(env.Stdout)
	default:
		err = after.WriteText(env.Stdout)
	}
	if err == nil && !after.Ready() {
		err = exitError{code: statusNo}
	}
	return err
}

// settled looks until all is well, or time is over: what hears of the network last may still be at work.
func (env *environment) settled(ctx context.Context, m reboot.Marker, wait time.Duration) (reboot.After, error) {
	for end := time.Now().Add(wait); ; {
		now, err := env.rebootNow(ctx)
		if err != nil {
			return reboot.After{}, err
		}
		if now.ByHand, err = env.byHand(ctx); err != nil {
			return reboot.After{}, err
		}
		now.NoParts = "nothing tells the times of a boot on this system"
		if env.Platform.Parts != nil {
			if now.Parts, err = env.Platform.Parts(ctx); err != nil {
				now.NoParts = err.Error()
			}
		}
		after := reboot.Compare(m, now)
		// A hand does not come off, and the boot stays the same: waiting is for the rest.
		if after.Ready() || !time.Now().Before(end) {
			return after, nil
		}
		select {
		case <-ctx.Done():
			return after, ctx.Err()
		case <-time.After(rebootPause):
		}
	}
}

func (env *environment) byHand(ctx context.Context) (steps []string, err error) {
	err = env.withEngine(ctx, func(e *installer.Engine, _ *host.Disk) error {
		ids, err := e.ByHand()
		for _, id := range ids {
			steps = append(steps, string(id))
		}
		return err
	})
	return steps, err
}

// verifyOrReboot is what the verb verify does.
func (env *environment) verifyOrReboot(ctx context.Context, f rebootFlags, asJSON bool) error {
	if err := f.check(asJSON); err != nil {
		return err
	}
	switch {
	case f.before:
		return env.beforeReboot(ctx)
	case f.after:
		return env.afterReboot(ctx, f, asJSON)
	}
	report := env.verify(ctx)
	if err := writeReport(env, report, asJSON); err != nil {
		return err
	}
	return unready(report)
}

func unready(r verify.Report) error {
	if r.Ready() {
		return nil
	}
	return exitError{code: statusNo}
}
