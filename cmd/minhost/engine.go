package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
)

// lockWait is how long apply and undo wait for another one to end.
const lockWait = 10 * time.Second

// account is who shall be an operator.
type account struct {
	UID  int
	Name string
}

// operator tells for whom the host is prepared: the account of the flag, else who called sudo,
// doas or pkexec, else the caller.
func (env *environment) operator(flag string) (account, error) {
	if flag != "" {
		uid, err := env.uidOf(flag)
		return account{uid, env.nameOf(uid)}, err
	}
	if env.EUID != 0 {
		return account{env.EUID, env.nameOf(env.EUID)}, nil
	}
	for _, v := range []string{"SUDO_UID", "PKEXEC_UID"} {
		if uid, err := strconv.Atoi(env.Getenv(v)); err == nil {
			return account{uid, env.nameOf(uid)}, nil
		}
	}
	if user := env.Getenv("DOAS_USER"); user != "" {
		uid, err := env.uidOf(user)
		return account{uid, env.nameOf(uid)}, err
	}
	return account{0, "root"}, nil
}

// withEngine calls f with the engine of this host.
func (env *environment) withEngine(ctx context.Context, f func(*installer.Engine, *host.Disk) error) error {
	gate := changeGate()
	disk, err := host.OpenDisk("/", gate, env.Platform.DiskOptions...)
	if err != nil {
		return err
	}
	defer disk.Close()
	steps, err := env.Platform.Steps(ctx, env, disk, gate)
	if err != nil {
		return err
	}
	boot, err := env.Platform.BootID()
	if err != nil {
		return fmt.Errorf("boot id: %w", err)
	}
	return f(installer.New(steps, host.NewStore(disk, env.Platform.Journal), boot, env.Log), disk)
}

// planHost is the plan as this user can see it, by the helper's eyes too.
func planHost(ctx context.Context, env *environment) (plan installer.Plan, err error) {
	if env.For == (account{}) {
		if env.For, err = env.operator(""); err != nil {
			return plan, err
		}
	}
	err = env.withEngine(ctx, func(e *installer.Engine, _ *host.Disk) error {
		plan = e.Plan(ctx)
		return nil
	})
	return env.heard(ctx, plan), err
}

// locked calls f as root, with the lock of apply and undo.
func (env *environment) locked(ctx context.Context, f func(*installer.Engine) error) error {
	return env.withEngine(ctx, func(e *installer.Engine, disk *host.Disk) error {
		lock, err := host.TakeLock(ctx, disk, env.Platform.Lock, lockWait)
		if err != nil {
			return err
		}
		err = f(e)
		// Without a journal nothing is installed, before an apply that was refused or after an undo:
		// then not even the lock stays.
		if _, gone := disk.Lstat(env.Platform.Journal); errors.Is(gone, fs.ErrNotExist) {
			return errors.Join(err, lock.Remove())
		}
		return errors.Join(err, lock.Release())
	})
}

// apply makes the chosen steps; expect, when given, is the digest of the plan that was shown.
func (env *environment) apply(ctx context.Context, o installer.Options, expect string) (report installer.Report, err error) {
	err = env.locked(ctx, func(e *installer.Engine) error {
		if expect != "" {
			if got := e.Plan(ctx).Digest(); got != expect {
				return hinted{fmt.Errorf("this host, or this program, is no longer as the plan %.12s found it (now %.12s): nothing was changed", expect, got),
					"minhost finalize-install --show"}
			}
		}
		report, err = e.Apply(ctx, o)
		return err
	})
	return report, err
}

// undo takes everything back, the lock last.
func (env *environment) undo(ctx context.Context) error {
	files, err := env.Platform.Files()
	if err != nil {
		return err
	}
	err = env.locked(ctx, func(e *installer.Engine) error {
		// Before the journal, whose folder goes when nothing else is in it.
		return errors.Join(env.forgetMarker(files), e.Undo(ctx))
	})
	if err != nil || env.Platform.ManagerDir == "" {
		return err
	}
	if names, err := files.ReadDir(env.Platform.ManagerDir); err != nil || len(names) > 0 {
		return gone(err) // somebody uses it by now
	}
	return gone(files.Remove(env.Platform.ManagerDir))
}

// gone forgives what is not there.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
