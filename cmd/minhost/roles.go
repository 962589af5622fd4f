package main

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"
)

// role is a hidden verb that the service manager calls: what it does is logged.
func (env *environment) role(use, short string, run func(context.Context) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Hidden: true, Args: usage(cobra.NoArgs),
		PreRun: func(*cobra.Command, []string) { env.Level.Set(slog.LevelInfo) },
		RunE:   func(cmd *cobra.Command, _ []string) error { return run(cmd.Context()) }}
}
