package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gominimal/minhost/installer/api"
)

func newExplainCommand(env *environment) *cobra.Command {
	var protocol string
	cmd := &cobra.Command{
		Use:   "explain BOX DESTINATION",
		Short: "Say why a box may or may not reach a destination",
		Long: "Say why a box (a name or a lease id) may or may not reach a destination: an address, or\n" +
			"an address and a port. Exit status 0: allowed. 1: refused. 2: the question cannot be answered.",
		Example: "  minhost explain web 192.0.2.7:443\n  minhost explain web '[2001:db8::1]:53' --protocol udp",
		Args:    usage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := api.ExplainIn{Box: args[0], Destination: args[1], Protocol: api.Protocol(protocol)}
			known := []api.Protocol{api.ProtocolTCP, api.ProtocolUDP, api.ProtocolICMP, api.ProtocolAny}
			if !slices.Contains(known, in.Protocol) {
				return usageError(cmd, fmt.Errorf("protocol %s: not tcp, udp, icmp or any", api.Text(protocol)))
			}
			out, err := ask(cmd.Context(), env, func(ctx context.Context, c helperClient) (api.ExplainOut, error) {
				return c.Explain(ctx, in)
			})
			if err != nil {
				return exitError{statusUsage, err}
			}
			return writeExplanation(env, out)
		},
	}
	cmd.Flags().StringVar(&protocol, "protocol", string(api.ProtocolTCP), "tcp, udp, icmp or any")
	return cmd
}

func writeExplanation(env *environment, out api.ExplainOut) error {
	word := "refused"
	if out.Allowed {
		word = "allowed"
	}
	line := word + ": " + api.Text(out.Reason)
	if out.Rule != "" {
		line += " (rule " + api.Text(out.Rule) + ")"
	}
	if _, err := fmt.Fprintln(env.Stdout, line); err != nil {
		return exitError{statusUsage, err}
	}
	if !out.Allowed {
		return exitError{code: statusNo}
	}
	return nil
}
