//go:build darwin || fakedarwin

package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/gominimal/minhost/darwin"
)

// macRoles are the hidden verbs that launchd calls, but for the boot job: that is apply.
func macRoles(env *environment, l darwin.Layout, edges macEdges) []*cobra.Command {
	return []*cobra.Command{
		env.role("helper", "Serve the API (started by launchd)", untilTold(func(ctx context.Context) error { return macHelper(ctx, env, l, edges) })),
		env.role("resolverd", "Answer the zone (started by launchd)", untilTold(func(ctx context.Context) error { return macResolverd(ctx, env, l, edges) })),
	}
}

// untilTold ends the context of a role when the service manager says so.
func untilTold(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		return run(ctx)
	}
}
