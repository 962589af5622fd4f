package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gominimal/minhost/installer/api"
)

const lsSchema = "minhost/v1/ls"

func newLsCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the boxes of this host",
		Long: "List the boxes of this host, oldest first. Of other accounts' boxes only name, address,\n" +
			"owner and state are shown, except to root.",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := ask(cmd.Context(), env, func(ctx context.Context, c helperClient) (api.ListOut, error) {
				return c.List(ctx)
			})
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(env.Stdout, struct {
					Schema string          `json:"schema"`
					Leases []api.LeaseInfo `json:"leases"`
				}{lsSchema, append([]api.LeaseInfo{}, out.Leases...)})
			}
			return writeLeases(env, out.Leases)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON (schema "+lsSchema+")")
	return cmd
}

func writeLeases(env *environment, leases []api.LeaseInfo) error {
	if len(leases) == 0 {
		_, err := fmt.Fprintln(env.Stdout, "no boxes")
		return err
	}
	rows := make([][]string, 0, len(leases))
	for _, l := range leases {
		rows = append(rows, leaseRow(l))
	}
	return writeTable(env.Stdout,
		[]string{"NAME", "ADDRESS", "STATE", "UID", "EGRESS", "BOUNDARY", "PROCESSES", "REFUSED", "LEASE", "LISTENS ON"}, rows)
}

// leaseRow shows "-" for what the caller may not see; numbers are shown only with a lease id,
// without which a 0 would be a claim.
func leaseRow(l api.LeaseInfo) []string {
	processes, refused := "", ""
	if l.Lease != "" {
		processes, refused = strconv.Itoa(l.Processes), strconv.Itoa(l.Refused)
	}
	return []string{
		l.Name, l.Address, string(l.State), strconv.Itoa(l.UID),
		egressWord(l), string(l.Boundary), processes, refused, l.Lease, listenersWord(l.Listeners),
	}
}

// listenersWord is what a box listens on: URLs where a browser can be sent to it.
func listenersWord(listeners []api.Listener) string {
	var words []string
	for _, l := range listeners {
		word := l.URL
		if word == "" {
			word = string(l.Protocol) + "://" + net.JoinHostPort(l.Address, strconv.Itoa(l.Port))
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// egressWord says what a box declared, and that nothing enforces it where nothing does.
func egressWord(l api.LeaseInfo) string {
	if l.Policy == nil {
		return ""
	}
	word := string(l.Policy.Egress)
	if l.Policy.Egress == api.EgressRules {
		word = fmt.Sprintf("rules (%d)", len(l.Policy.Rules))
	}
	confined := l.Policy.Egress != api.EgressOpen || len(l.Policy.DenySubnets) > 0
	if confined && l.Enforcement == api.EnforcementNone {
		word += ", not enforced"
	}
	return word
}
