package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/linux"
	"github.com/gominimal/minhost/linux/errand"
	"github.com/gominimal/minhost/linux/selftest"
	"github.com/gominimal/minhost/linux/standalone"
	"github.com/gominimal/minhost/resolverd"
	answers "github.com/gominimal/minhost/resolverd/report"
)

// Verbs that only minhost itself and the service manager call.
const (
	selfTestVerb = "selftest-child"
	listenVerb   = "exec-listen"
)

// roles are the hidden verbs of a Linux host.
func roles(env *environment, l linux.Layout) []*cobra.Command {
	role := func(use, short string, run func(context.Context) error) *cobra.Command {
		return env.role(use, short, func(ctx context.Context) error { return tellManager(run(ctx)) })
	}
	raw := func(use string, run func([]string) error) *cobra.Command {
		return &cobra.Command{Use: use, Hidden: true, DisableFlagParsing: true,
			RunE: func(_ *cobra.Command, args []string) error { return run(args) }}
	}
	supervise := role("supervise", "Run helper and answerer, and start them again when they die", nil)
	readyFD := supervise.Flags().Int("ready-fd", 0, "descriptor that is told when both are ready")
	holder := supervise.Flags().String("holder", "", "cgroup folder to enter")
	supervise.RunE = func(cmd *cobra.Command, _ []string) error {
		c := standaloneConfig(l)
		c.Holder = *holder
		return standalone.Supervise(cmd.Context(), c, *readyFD)
	}
	answerer := role("resolverd", "Answer the zone (started by the service manager)", nil)
	boot := answerer.Flags().String("boot-id", "", "this boot, as the helper sees it (default: as this process does)")
	answerer.RunE = func(cmd *cobra.Command, _ []string) error { return runResolverd(cmd.Context(), env, l, *boot) }
	return []*cobra.Command{
		role("helper", "Serve the API (started by the service manager)", func(ctx context.Context) error { return runHelper(ctx, env, l) }),
		answerer,
		role("hold", "Make tree, belt and table, then hold the tree (started by the service manager)", func(ctx context.Context) error { return runHold(ctx, env, l) }),
		role("names", "Keep the link that sends the zone to the answerer (started by the service manager)", func(ctx context.Context) error { return runNames(ctx, env, l) }),
		supervise,
		role("unsupervise", "End the supervisor, helper and answerer (called by the init)", func(ctx context.Context) error { return standalone.Stop(ctx, standaloneConfig(l)) }),
		raw(listenVerb, standalone.ExecListen),
		raw(errand.Verb, func(args []string) error { return errand.Child(args, errands()) }),
		raw(selfTestVerb, func(args []string) error { return exitWith(selftest.Child(args, os.Stdout, os.Stderr)) }),
	}
}

// exitWith makes an exit status of a role's own.
func exitWith(code int) error {
	if code == 0 {
		return nil
	}
	return exitError{code: code}
}

// runResolverd is `minhost resolverd`: the answerer, unprivileged.
func runResolverd(ctx context.Context, env *environment, l linux.Layout, boot string) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if boot == "" {
		var err error
		if boot, err = bootID(); err != nil {
			return fmt.Errorf("resolverd: %w", err)
		}
	}
	config, err := readConfig(l)
	if err != nil {
		return fmt.Errorf("resolverd: %w", err)
	}
	runtime.GOMAXPROCS(max(resolverd.Processors, runtime.GOMAXPROCS(0)))
	if err := keepSmall(); err != nil {
		env.Log.Info("the answerer takes some memory more than it needs", "cause", err)
	}
	return resolverd.Run(ctx, resolverd.Config{
		Port: resolverd.DefaultPort, BoxPort: resolverd.DefaultBoxPort, Files: resolverd.Inherited(),
		ZoneFile: l.Zone, BootID: dashed(boot), Report: l.Reports, Watched: l.Lookups, LeaseMark: config.Marks.Lease, Log: env.Log,
	})
}

// dashed is a boot id as the kernel writes it: systemd's %b has no hyphens.
func dashed(id string) string {
	if len(id) != 32 {
		return id
	}
	return strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-")
}

// runNames is `minhost names`: it keeps link and resolver settings right until SIGTERM.
func runNames(ctx context.Context, env *environment, l linux.Layout) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	tell := answers.NewSender(l.Reports)
	defer tell.Close()
	repaired := func(what string) { tell.Repaired(answers.Repaired{What: "names: " + what}) }
	return namesStep(nil).Hold(ctx, env.Log, func() { notifyReady(env) }, repaired)
}

// tellManager has the service manager keep why a role ended: where the journal has no room, nothing else does.
func tellManager(err error) error {
	if err != nil {
		_, _ = daemon.SdNotify(false, "STATUS="+api.Text(err.Error())) // the journal has it too
	}
	return err
}

// notifyReady tells the service manager, where there is one.
func notifyReady(env *environment) {
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		env.Log.Warn("readiness", "cause", err)
	}
}

// runHold is `minhost hold`, the main process of the tree unit: it enters holder/ (a unit's own
// cgroup may have no process beside sub-cgroups), applies the boot steps of the tree, and sleeps.
func runHold(ctx context.Context, env *environment, l linux.Layout) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	config, err := readConfig(l)
	if err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	ground := linux.Ground{Rel: treeRel(serviceManager()), Marks: config.Marks, Planes: config.Planes, Log: env.Log, Lacking: lacking()}
	owner := &tableOwner{}
	defer owner.close()
	for _, f := range activation.Files(true) {
		if owner.take(f) {
			ground.Owner = owner.get
		}
	}
	tree, err := ground.Tree()
	if err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	defer tree.Close()
	if err := errors.Join(tree.Ensure(), tree.EnterHolder(os.Getpid())); err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	// At boot the helper's socket is there and the helper is not: it waits for this process.
	repair := func(ctx context.Context) (bool, error) {
		if running, err := helperRuns(ctx, l); err != nil || !running {
			return false, err
		}
		return env.repairTable(ctx)
	}
	if err := holdLayers(ctx, ground, repair, env.Log); err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	if err := (linux.LocalhostStep{Ground: ground}).Apply(ctx, nil); err != nil {
		env.Log.Warn("boxes share the host's localhost", "cause", err)
	}
	notifyReady(env)
	<-ctx.Done()
	return nil
}

// holdLayers makes belt and table. On a kernel that cannot hold the table neither is made: the belt alone would refuse
// the boxes that may run there, which the helper says are not confined.
func holdLayers(ctx context.Context, ground linux.Ground, repair func(context.Context) (bool, error), log *slog.Logger) error {
	if err := ground.Capable(ctx); errors.Is(err, linux.ErrIncapable) {
		log.Error("no box can be confined", "cause", err)
		return nil
	}
	for _, s := range []installer.Step{linux.BeltStep{Ground: ground}, linux.TableStep{Ground: ground, Repair: repair}} {
		o, err := s.Probe(ctx)
		if err == nil && o.State != installer.Satisfied {
			err = s.Apply(ctx, &installer.Record{Step: s.ID()})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.ID(), err)
		}
	}
	return nil
}

// helperRuns tells whether a helper holds its lock.
func helperRuns(ctx context.Context, l linux.Layout) (bool, error) {
	disk, err := host.OpenDisk("/", nil)
	if err != nil {
		return false, err
	}
	defer disk.Close()
	lock, err := host.TakeLock(ctx, disk, l.HelperPID, 0)
	var held *host.Held
	switch {
	case errors.As(err, &held):
		return true, nil
	case err != nil:
		return false, err
	}
	return false, lock.Release()
}
