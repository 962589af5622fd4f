//go:build unix

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
)

func newStopCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "stop BOX",
		Short: "End a box that minhost run started",
		Long: "End a box of this account, with all that runs in it: its name or its lease id. What it was\n" +
			"refused is told on standard error.",
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return stopBox(cmd.Context(), env, args[0]) },
	}
}

func stopBox(ctx context.Context, env *environment, box string) error {
	c, err := bounded(ctx, dialTime, func(ctx context.Context) (*client.Client, error) {
		return client.Dial(ctx, env.Socket)
	})
	if err != nil {
		return err
	}
	defer c.Close()
	n, err := findBox(ctx, env, c, box)
	if err != nil {
		return err
	}
	out, err := bounded(ctx, endTime, func(ctx context.Context) (api.TeardownOut, error) {
		return c.Teardown(ctx, api.TeardownIn{Lease: n.Lease, Secret: n.Secret, Kill: true})
	})
	if err != nil {
		return err
	}
	n.forget()
	s := &session{env: env}
	for _, line := range refusalLines(out.Refusals, "the command") {
		s.tell("%s", line)
	}
	return nil
}
