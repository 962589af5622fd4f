package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gominimal/minhost/installer"
)

func newApplyCommand(env *environment) *cobra.Command {
	var only []string
	var atBoot bool
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Bring back what does not survive a reboot (run by the boot unit, or your init)",
		Long: "Apply the steps that live in the kernel or in processes: tree, belt, table, services. The same\n" +
			"engine as finalize-install, over those steps only. Applied again it changes nothing.",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if env.EUID != 0 {
				return hinted{errors.New("apply is for root"), "sudo minhost apply"}
			}
			o := installer.Options{Boot: true, AtBoot: atBoot}
			for _, id := range only {
				o.Only = append(o.Only, installer.ID(id))
			}
			report, err := env.apply(cmd.Context(), o, "")
			for _, r := range report.Results {
				if r.Deed == installer.Applied {
					fmt.Fprintf(env.Stdout, "done: %s\n", r.Describe)
				}
			}
			return err
		},
	}
	cmd.Flags().StringSliceVar(&only, "only", nil, "only these steps (ids of the plan)")
	// For the scripts and jobs that the boot starts: verify --after-reboot tells them from a hand.
	cmd.Flags().BoolVar(&atBoot, "at-boot", false, "the boot itself calls this")
	_ = cmd.Flags().MarkHidden("at-boot") // fails only for a flag that does not exist
	return cmd
}
