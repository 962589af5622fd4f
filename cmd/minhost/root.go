package main

import (
	"context"

	"github.com/spf13/cobra"
)

// run is the whole program but for os.Exit: it executes one command line and returns its status.
func run(ctx context.Context, env *environment, args []string) int {
	root := newRootCommand(env)
	root.SetArgs(args)
	return report(env.Stderr, root.ExecuteContext(ctx))
}

// newRootCommand makes the command tree. Each verb has a file of its own.
func newRootCommand(env *environment) *cobra.Command {
	root := &cobra.Command{
		Use:           "minhost",
		Short:         "Addresses, names and egress verdicts for the sandboxes of this host",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       programVersion(),
		Args:          usage(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetVersionTemplate("minhost {{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(usageError)
	root.PersistentFlags().StringVar(&env.Socket, "socket", env.Socket, "helper socket")
	_ = root.PersistentFlags().MarkHidden("socket") // fails only for a flag that does not exist
	root.AddCommand(env.Platform.Roles(env)...)
	root.AddCommand(
		newApplyCommand(env),
		newExplainCommand(env),
		newFinalizeCommand(env),
		newLsCommand(env),
		newOpenCommand(env),
		newOperatorCommand(env),
		newRunCommand(env),
		newStopCommand(env),
		newStatusCommand(env),
		newVerifyCommand(env),
		newVersionCommand(env),
		newWatchCommand(env),
	)
	return root
}

// usage makes a wrong number of arguments, or an unknown command, a usage error.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError(cmd, err)
		}
		return nil
	}
}

// usageError marks what is wrong with a command line; subcommands inherit it.
func usageError(cmd *cobra.Command, err error) error {
	return exitError{statusUsage, hinted{err, cmd.CommandPath() + " --help"}}
}
