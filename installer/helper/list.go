package helper

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// list shows own leases in full, those of others by name, address and owner only; root sees all.
func (h *Helper) list(ctx context.Context, c request, _ api.ListIn) (api.ListOut, error) {
	listening, err := h.listening(ctx)
	if err != nil {
		h.log.Warn("list", "cause", err) // all else is still worth an answer
	}
	planes := h.planes(ctx)
	type shown struct {
		*box
		info api.LeaseInfo
	}
	var all []shown
	h.mu.Lock()
	for _, b := range h.boxes {
		if b.leaf != nil {
			all = append(all, shown{b, h.info(b, b.UID == c.peer.UID || c.root())})
		}
	}
	h.mu.Unlock()
	slices.SortFunc(all, func(a, b shown) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	out := api.ListOut{Leases: []api.LeaseInfo{}}
	for _, b := range all {
		if b.info.Lease != "" {
			b.info.Listeners = listening[b.ID]
			b.info.Traffic = boxTraffic(planes, b.box)
			if pids, err := b.leaf.Pids(); err == nil { // else it has ended meanwhile
				b.info.Processes = len(pids)
			}
		}
		out.Leases = append(out.Leases, b.info)
	}
	return out, nil
}

// info is what does not need the kernel. h.mu is held.
func (h *Helper) info(b *box, full bool) api.LeaseInfo {
	i := api.LeaseInfo{Name: b.Name, Address: text(b.Address), UID: int(b.UID), State: api.LeaseState(b.State)}
	if !full {
		return i
	}
	i.Lease, i.Number, i.Leaf = b.ID, int(b.Number), b.leaf.Path()
	i.Policy = policyTo(b.Policy)
	i.Enforcement = h.enforcement()
	i.Boundary = boundaryTo(b.Lease)
	i.EndWithConnection = b.EndWithConnection
	i.Refused = b.refused.total
	i.Since = stamp(b.Since)
	i.Localhost = localhostTo(b.Lease)
	i.Mode, i.Attempt = api.Mode(b.Mode), b.Attempt
	return i
}

func (h *Helper) status(ctx context.Context, c request, _ api.StatusIn) (api.StatusOut, error) {
	refused, told, lost := h.refusalCounts(ctx)
	planes := h.planes(ctx)
	runners := h.runnersTo(planes, c)
	h.mu.Lock()
	defer h.mu.Unlock()
	return api.StatusOut{
		Refused: int(refused), RefusalsTold: int(told), RefusalsLost: int(lost), Answers: h.answers,
		Traffic: h.trafficTo(planes, runners, c),
		Version: h.cfg.Version, PID: os.Getpid(), Since: stamp(h.started), BootID: h.cfg.BootID,
		Enforcement: h.enforcement(), EnforcementCause: h.cfg.Unenforceable, ServiceManager: h.cfg.ServiceManager,
		Leases: len(h.boxes), Plans: h.counts.plans, Attaches: h.counts.attaches,
		Abandons: h.counts.abandons, Teardowns: h.counts.teardowns,
	}, nil
}

// refusalCounts are 0 where they cannot be had.
func (h *Helper) refusalCounts(ctx context.Context) (refused, told, lost uint64) {
	if h.cfg.Table == nil {
		return 0, 0, 0
	}
	refused, told, err := h.cfg.Table.Refusals(ctx)
	if err != nil {
		h.log.Warn("count refusals", "cause", err)
	}
	if h.cfg.Refusals != nil {
		lost = h.cfg.Refusals.Lost()
	}
	return refused, told, lost
}

// explain decides as the table does. A caller inside a leaf may ask about its own box only.
func (h *Helper) explain(_ context.Context, c request, in api.ExplainIn) (api.ExplainOut, error) {
	protocol := lease.Protocol(cmp.Or(string(in.Protocol), string(lease.TCP)))
	if protocol == lease.Any {
		return api.ExplainOut{}, invalid("protocol", fmt.Errorf("ask about tcp, udp or icmp"))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.boxes[in.Box]
	if b == nil {
		b = h.names[in.Box]
	}
	if b == nil || b.leaf == nil || b.UID != c.peer.UID && !c.root() || c.leaf != "" && c.leaf != b.ID {
		return api.ExplainOut{}, noSuchLease(in.Box)
	}
	if h.cfg.Table == nil {
		return api.ExplainOut{Allowed: true, Reason: "nothing is enforced on this host: " + h.cfg.Unenforceable}, nil
	}
	to, absent, err := h.destination(b, in.Destination)
	if err != nil {
		return api.ExplainOut{}, invalid("destination", err)
	}
	if absent != "" {
		return api.ExplainOut{Reason: absent}, nil
	}
	to = h.dialled(b.Lease, to)
	d := inMode(b.Mode, to.Addr(), h.verdictOf(b).Policy.Decide(to, protocol, h.place(b)))
	if other := h.holder(to.Addr().String()); d.Allowed && other != nil && other != b && other.enforced {
		in := h.verdictOf(other).DecideIngress(lease.OtherBox, b.Number, to.Port(), protocol)
		return api.ExplainOut{Allowed: in.Allowed, Rule: d.Rule, Reason: fmt.Sprintf("%s, and of box %s: %s", d.Reason, other.Name, in.Reason)}, nil
	}
	return api.ExplainOut{Allowed: d.Allowed, Reason: d.Reason, Rule: d.Rule}, nil
}

// holder finds the box that holds an address. h.mu is held.
func (h *Helper) holder(address string) *box {
	for _, b := range h.boxes {
		if b.Address.IsValid() && b.Address.String() == address {
			return b
		}
	}
	return nil
}

// Answered keeps the counters of the answerer, as it last told them.
func (h *Helper) Answered(counters []api.Counter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers = counters
}
