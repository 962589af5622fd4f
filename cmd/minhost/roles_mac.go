//go:build darwin || fakedarwin

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/gominimal/minhost/darwin"
	"github.com/gominimal/minhost/darwin/launchd"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/resolverd"
)

// macRoles are the hidden verbs that launchd calls, but for the boot job: that is apply.
func macRoles(env *environment, l darwin.Layout, edges macEdges) []*cobra.Command {
	role := func(use, short string, run func(context.Context) error) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Hidden: true, Args: usage(cobra.NoArgs),
			PreRun: func(*cobra.Command, []string) { env.Level.Set(slog.LevelInfo) },
			RunE: func(cmd *cobra.Command, _ []string) error {
				ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
				defer stop()
				return run(ctx)
			}}
	}
	return []*cobra.Command{
		role("helper", "Serve the API (started by launchd)", func(ctx context.Context) error { return macHelper(ctx, env, l) }),
		role("resolverd", "Answer the zone (started by launchd)", func(ctx context.Context) error { return macResolverd(ctx, env, l, edges) }),
	}
}

// macResolverd is `minhost resolverd`: the answerer, unprivileged. Started by hand it binds for itself.
func macResolverd(ctx context.Context, env *environment, l darwin.Layout, edges macEdges) error {
	boot, err := env.Platform.BootID()
	if err != nil {
		return fmt.Errorf("resolverd: %w", err)
	}
	files, err := edges.Activate(launchd.SocketNames()...)
	if err != nil {
		return fmt.Errorf("resolverd: %w", err)
	}
	env.Log.Info("ready", append([]any{"part", "answerer"}, (darwin.Boot{Run: host.Exec{}}).Stamp(ctx)...)...)
	runtime.GOMAXPROCS(max(resolverd.Processors, runtime.GOMAXPROCS(0)))
	return resolverd.Run(ctx, resolverd.Config{
		Port: resolverd.DefaultPort, Files: files, ZoneFile: l.Zone, BootID: boot, Log: env.Log,
	})
}
