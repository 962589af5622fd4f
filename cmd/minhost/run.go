//go:build unix

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gominimal/minhost/installer/api"
)

// Exit statuses of run, beside the program's own and 128+n for a signal: as env(1) and
// timeout(1) have them.
const (
	statusRunFailed     = 125 // minhost failed: the program did not run, or was ended for it
	statusNotExecutable = 126
	statusNotFound      = 127
)

func newRunCommand(env *environment) *cobra.Command {
	var f runFlags
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [flags] [--] PROGRAM [ARGUMENT...]",
		Short: "Run a program in a box of its own",
		Long: "Run a program in a box: with a name and an address of its own when it is given one, and\n" +
			"confined to what --egress and --allow say. It needs no root, and the box ends with the\n" +
			"program.\n\n" +
			"The program finds MINHOST_NAME, MINHOST_ADDRESS and MINHOST_HOST (this host as the box sees\n" +
			"it) in its environment. What it was refused is told on standard error at the end.\n\n" +
			"Exit status: the program's; 128+n when signal n ended it; 125: minhost failed; 126: the\n" +
			"program cannot be executed; 127: it was not found.",
		Example: "  minhost run --name web -- python3 -m http.server 3000\n" +
			"  minhost run --egress deny -- make test\n" +
			"  minhost run --allow 192.0.2.0/24:443 --allow '[2001:db8::1]:53/udp' -- ./fetch",
		Args: func(cmd *cobra.Command, args []string) error {
			return runUsage(cmd, cobra.MinimumNArgs(1)(cmd, args))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, w, err := parseRun(cmd.Flags(), &f, &o)
			if err != nil {
				return runUsage(cmd, err)
			}
			path, err := findProgram(args[0], env.Getenv("PATH"))
			if err == nil && w.switchProgram != "" {
				w.switchProgram, err = findProgram(w.switchProgram, env.Getenv("PATH"))
			}
			if err != nil {
				return err
			}
			return exitOf(newSession(env, path, args, w).run(cmd.Context(), plan))
		},
	}
	// What follows the program is the program's.
	cmd.Flags().SetInterspersed(false)
	cmd.SetFlagErrorFunc(runUsage)
	f.register(cmd.Flags())
	o.register(cmd.Flags())
	return cmd
}

// parseRun turns the flags into the call of Plan and into how the program is run.
func parseRun(flags *pflag.FlagSet, f *runFlags, o *runOptions) (plan api.PlanIn, w way, err error) {
	if plan, err = f.plan(flags.Changed("egress")); err != nil {
		return plan, w, err
	}
	if plan.Mode, err = parseMode(o.mode); err != nil {
		return plan, w, fmt.Errorf("--mode %w", err)
	}
	if err := o.network(&plan, flags); err != nil {
		return plan, w, err
	}
	plan.EndWithConnection = !o.detach
	w, err = o.way(flags, plan.Policy.Egress != api.EgressOpen || len(plan.Policy.DenySubnets) > 0)
	if err == nil && plan.Mode == api.ModeOwnIP {
		err = o.switched(&w)
	}
	plan.Boundary = w.boundary()
	return plan, w, err
}

// runUsage is usageError with run's own status: 2 could be the program's.
func runUsage(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	return exitError{statusRunFailed, hinted{err, cmd.CommandPath() + " --help"}}
}

// exitOf makes the status of a program, or what went wrong before it had one, an error for main.
func exitOf(status int, err error) error {
	var exit exitError
	switch {
	case errors.As(err, &exit):
		return err
	case err != nil:
		return exitError{statusRunFailed, err}
	case status != statusOK:
		return exitError{code: status}
	}
	return nil
}
