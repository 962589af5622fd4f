package verify

import (
	"context"
	"fmt"

	"github.com/gominimal/minhost/installer/api"
)

// helperName is the name of the row, and of the step, that stands for the helper.
const helperName = "helper"

// Helper is what is asked of the helper; *client.Client has it.
type Helper interface {
	Status(context.Context) (api.StatusOut, error)
	Verify(context.Context) (api.VerifyOut, error)
}

// Unreachable is the row of a helper that cannot be called.
func Unreachable(err error) Row {
	row := Row{
		Name:   helperName,
		State:  Failed,
		Detail: err.Error(),
		Loses:  "no box gets an address, a name or a verdict",
		Next:   "minhost finalize-install",
	}
	if h, ok := err.(interface{ Hint() string }); ok && h.Hint() != "" {
		row.Next = h.Hint()
	}
	return row
}

// FromHelper calls the helper: that it answers is one row, what it enforces another, and its own
// checks, made as root, are the rest.
func FromHelper(ctx context.Context, h Helper) []Row {
	status, err := h.Status(ctx)
	if err != nil {
		return []Row{Unreachable(err)}
	}
	rows := []Row{
		{
			Name: helperName, State: OK,
			Detail: fmt.Sprintf("answers, version %s, pid %d, %d boxes", status.Version, status.PID, status.Leases),
		},
		enforcement(status),
	}
	checks, err := h.Verify(ctx)
	if err != nil {
		return append(rows, Row{
			Name: "kernel checks", State: Unknown, Detail: err.Error(),
			Loses: "nobody has looked whether the kernel holds what the helper believes",
			Next:  "sudo minhost verify",
		})
	}
	return append(rows, FromChecks(checks.Checks)...)
}

func enforcement(status api.StatusOut) Row {
	row := Row{Name: "enforcement", State: OK, Detail: "the kernel decides for each box"}
	if status.Enforcement != api.EnforcementPerBox {
		row.State = Degraded
		row.Detail = "none: " + status.EnforcementCause
		row.Loses = "a confined box is refused, unless its runner takes it unenforced"
		row.Next = "minhost status"
	}
	return row
}
