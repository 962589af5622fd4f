package helper

import (
	"cmp"
	"context"
	"slices"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// planes is what passed; nil where it cannot be had.
func (h *Helper) planes(ctx context.Context) *lease.Planes {
	if h.cfg.Table == nil {
		return nil
	}
	p, err := h.cfg.Table.Traffic(ctx)
	if err != nil {
		h.log.Warn("count traffic", "cause", err)
		return nil
	}
	return &p
}

// trafficTo tells a caller about all boxes together, the host, runners, and the caller's own boxes. h.mu is held.
func (h *Helper) trafficTo(p *lease.Planes, runners []api.Traffic, c request) []api.Traffic {
	if p == nil {
		return nil
	}
	out := []api.Traffic{traffic("cohort", p.Cohort), traffic("node", p.Node)}
	var boxes []api.Traffic
	for _, b := range h.boxes {
		if t := boxTraffic(p, b); t != nil && (b.UID == c.peer.UID || c.root()) {
			boxes = append(boxes, *t)
		}
	}
	slices.SortFunc(boxes, func(a, b api.Traffic) int { return cmp.Compare(a.Lease, b.Lease) })
	return slices.Concat(out, runners, boxes)
}

// boxTraffic is nil for a box that the table does not have.
func boxTraffic(p *lease.Planes, b *box) *api.Traffic {
	if p == nil || b.leaf == nil {
		return nil
	}
	n, ok := p.Boxes[b.leaf.ID()]
	if !ok {
		return nil
	}
	t := traffic("box", n)
	t.Lease, t.UID = b.ID, int(b.UID)
	return &t
}

func traffic(plane string, t lease.Traffic) api.Traffic {
	return api.Traffic{Plane: plane, SentPackets: int(t.SentPackets), SentBytes: int(t.SentBytes),
		ReceivedPackets: int(t.ReceivedPackets), ReceivedBytes: int(t.ReceivedBytes)}
}
