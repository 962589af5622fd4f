package cut

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gominimal/minhost/linux/sockdiag"
)

// End destroys the sockets that were made in these cgroups, listeners too, and says how many. It is to be
// called when no process is left there: what lives on then is held by somebody outside, who was given it
// (SCM_RIGHTS, the helper's Listen). The table refuses it everything; here who waits in it is told. What
// was bound by its owner stays bound until it is closed (tcp_abort, udp_abort, Linux 6.18), so its address is
// not leased until then. On a kernel that cannot destroy sockets it does nothing.
func (c *Cutter) End(ctx context.Context, groups []uint64) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, err := c.sockets(ctx, liveTCP|sockdiag.Listen)
	if err != nil {
		return 0, fmt.Errorf("end sockets: %w", err)
	}
	done := 0
	var errs []error
	for _, s := range all {
		if !slices.Contains(groups, s.Cgroup) {
			continue
		}
		switch err := c.destroy(ctx, s); {
		case errors.Is(err, sockdiag.ErrNotEnded):
			return done, nil
		case err != nil:
			errs = append(errs, err)
		default:
			done++
		}
	}
	return done, errors.Join(errs...)
}
