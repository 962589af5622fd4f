package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/gominimal/minhost/verify"
	"github.com/gominimal/minhost/verify/reboot"
)

// verifyTimeout bounds the whole of verify: 254 binds, three lookups, the probes and the helper's
// live self-test take about two seconds together on a sound host.
const verifyTimeout = 60 * time.Second

func newVerifyCommand(env *environment) *cobra.Command {
	var asJSON bool
	var f rebootFlags
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that this host does what finalize-install promised",
		Long: "Check that this host does what finalize-install promised. It changes nothing and needs no\n" +
			"root: what only root can see is asked of the helper. Exit status 0: the host is ready\n" +
			"(warnings and optional parts that this host cannot have do not count). 1: it is not.\n\n" +
			"--before-reboot keeps what is ok now, and --after-reboot wants it back: in another boot, of the\n" +
			"same program and files, with no step applied by hand. The expectation stays for later boots.",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return env.verifyOrReboot(cmd.Context(), f, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON (schema "+verify.Schema+"; "+reboot.Schema+" with --after-reboot)")
	f.add(cmd)
	return cmd
}

func writeReport(env *environment, report verify.Report, asJSON bool) error {
	if asJSON {
		return writeJSON(env.Stdout, report)
	}
	return report.WriteText(env.Stdout)
}

// verify reads the host: what the steps see, what a user of the host sees, what the helper sees.
func (env *environment) verify(ctx context.Context) verify.Report {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	return verify.Merge(env.planRows(ctx), env.Observe(ctx), env.helperRows(ctx))
}

func (env *environment) planRows(ctx context.Context) []verify.Row {
	plan, err := env.Platform.Plan(ctx, env)
	if err != nil {
		return []verify.Row{{
			Name: "plan", State: verify.Failed, Detail: err.Error(),
			Loses: "nobody knows what this host lacks", Next: "minhost finalize-install --show",
		}}
	}
	return verify.FromPlan(plan, env.EUID == 0)
}

func (env *environment) helperRows(ctx context.Context) []verify.Row {
	c, err := env.Dial(ctx, env.Socket)
	if err != nil {
		return []verify.Row{verify.Unreachable(err)}
	}
	defer c.Close()
	return verify.FromHelper(ctx, c)
}
