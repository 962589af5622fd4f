package cut

import (
	"context"
	"net/netip"
)

// Asker tells the lease number of the box that sent something from one address to a service of this
// host at another, by the mark of its flow; 0 when no box did. The service's address is the one it
// has: a flow that was redirected to it is found all the same.
func (c *Cutter) Asker(ctx context.Context, protocol uint8, from, service netip.AddrPort) (uint16, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok, err := c.ask(ctx, Socket{Protocol: protocol, Local: service, Remote: from}, ctaReply)
	if err != nil || !ok {
		return 0, err
	}
	if started := c.marks.Lease | c.marks.Host; t.Mark&started != started {
		return 0, nil
	}
	return uint16(t.Mark), nil
}
