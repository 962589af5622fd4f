package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gominimal/minhost/installer/api"
)

func newWatchCommand(env *environment) *cobra.Command {
	var asJSON, lookups bool
	cmd := &cobra.Command{
		Use:   "watch [BOX]",
		Short: "Print what happens to your boxes, as it happens",
		Long: "Print events (refusals, boxes that come and go) of one box, or of all your boxes, one line\n" +
			"each, until it is interrupted or the helper ends. With --dns they are the lookups that reach the\n" +
			"answerer, for one minute: those of your boxes; to root those of all boxes and of the host.",
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.Dial(cmd.Context(), env.Socket)
			if err != nil {
				return err
			}
			defer c.Close()
			in := api.WatchIn{Lookups: lookups}
			if len(args) == 1 {
				if in.Lease, err = leaseOf(cmd.Context(), c, args[0]); err != nil {
					return err
				}
			}
			return c.Watch(cmd.Context(), in, func(e api.Event) error { return writeEvent(env, e, asJSON) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	cmd.Flags().BoolVar(&lookups, "dns", false, "print lookups instead, for one minute")
	return cmd
}

// leaseOf finds the lease id of a box that was given by name or by lease id.
func leaseOf(ctx context.Context, c helperClient, box string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := c.List(ctx)
	if err != nil {
		return "", err
	}
	for _, l := range out.Leases {
		if l.Lease != "" && (l.Name == box || l.Lease == box) {
			return l.Lease, nil
		}
	}
	return "", hinted{fmt.Errorf("watch %s: you have no box of this name or lease id", api.Text(box)), "minhost ls"}
}

func writeEvent(env *environment, e api.Event, asJSON bool) error {
	if asJSON {
		return writeJSONLine(env.Stdout, e)
	}
	box := e.Box
	if box == "" {
		box = e.Lease
	}
	_, err := fmt.Fprintf(env.Stdout, "%s  %-8s  %s  %s\n",
		shown(e.Time), api.Text(string(e.Kind)), shown(box), api.Text(e.Text))
	return err
}
