package verify

import (
	"context"

	"github.com/gominimal/minhost/resolverd/probe"
)

// Observe makes the checks that need neither root nor the helper, on the host that it runs on.
func Observe(ctx context.Context) []Row {
	return []Row{
		Range(ctx, Bind),
		Answer(ctx, "lookups", AnswererAddress, probe.Check),
		Answer(ctx, "lookups of boxes", BoxViewAddress, probe.Check),
	}
}
