package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gominimal/minhost/installer/api"
)

const statusSchema = "minhost/v1/status"

func newStatusCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how the helper is doing",
		Args:  usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := ask(cmd.Context(), env, func(ctx context.Context, c helperClient) (api.StatusOut, error) {
				return c.Status(ctx)
			})
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(env.Stdout, struct {
					Schema string `json:"schema"`
					api.StatusOut
				}{statusSchema, out})
			}
			return writeStatus(env, out)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON (schema "+statusSchema+")")
	return cmd
}

func writeStatus(env *environment, s api.StatusOut) error {
	enforcement := string(s.Enforcement)
	if s.EnforcementCause != "" {
		enforcement += ": " + s.EnforcementCause
	}
	lines := [][2]string{
		{"helper", "pid " + strconv.Itoa(s.PID) + ", up since " + s.Since},
		{"version", s.Version},
		{"boot", s.BootID},
		{"service manager", s.ServiceManager},
		{"enforcement", enforcement},
		{"leases", strconv.Itoa(s.Leases)},
		{"since start", fmt.Sprintf("%d plans, %d attaches, %d abandons, %d teardowns",
			s.Plans, s.Attaches, s.Abandons, s.Teardowns)},
		{"answers", answersText(s.Answers)},
		{"boxes", trafficText(s.Traffic, "cohort")},
		{"host", trafficText(s.Traffic, "node")},
		{"refused", refusedText(s)},
	}
	for _, t := range s.Traffic {
		if t.Plane == "runner" {
			lines = append(lines, [2]string{fmt.Sprintf("runner, uid %d", t.UID), sentAndReceived(t)})
		}
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(env.Stdout, "%-16s %s\n", line[0], shown(line[1])); err != nil {
			return err
		}
	}
	return nil
}

// refusedText is what the table refused. Where no box has a verdict there is none.
func refusedText(s api.StatusOut) string {
	if s.Enforcement == api.EnforcementNone {
		return "nothing: boxes have no verdict here"
	}
	return fmt.Sprintf("%d packets since the table was filled, %d told, %d times too fast to be read", s.Refused, s.RefusalsTold, s.RefusalsLost)
}

// trafficText is what a plane sent and received.
func trafficText(all []api.Traffic, plane string) string {
	for _, t := range all {
		if t.Plane == plane {
			return sentAndReceived(t)
		}
	}
	return "not counted"
}

func sentAndReceived(t api.Traffic) string {
	return fmt.Sprintf("sent %d packets, %d bytes; received %d packets, %d bytes", t.SentPackets, t.SentBytes, t.ReceivedPackets, t.ReceivedBytes)
}

// answersText are the kinds of answers that were given, most important first.
func answersText(all []api.Counter) string {
	var some []string
	for _, c := range all {
		if c.Count > 0 {
			some = append(some, fmt.Sprintf("%d %s", c.Count, c.Kind))
		}
	}
	if len(some) == 0 {
		return "none told yet"
	}
	return strings.Join(some, ", ")
}
