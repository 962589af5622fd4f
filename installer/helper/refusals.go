package helper

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// maxDestinations is how many destinations a box's refusals are kept for; the oldest go first.
const maxDestinations = 64

// refusals of one box, by destination. Guarded by Helper.mu.
type refusals struct {
	all   []api.Refusal
	total int
}

// add counts a refusal and returns it with its count.
func (r *refusals) add(x api.Refusal) api.Refusal {
	r.total++
	same := func(o api.Refusal) bool {
		return o.Destination == x.Destination && o.Port == x.Port && o.Protocol == x.Protocol && o.Kind == x.Kind
	}
	x.Count = 1
	if i := slices.IndexFunc(r.all, same); i >= 0 {
		x.Count = r.all[i].Count + 1
		r.all = slices.Delete(r.all, i, i+1)
	}
	r.all = append(r.all, x)
	if len(r.all) > maxDestinations {
		r.all = slices.Delete(r.all, 0, 1)
	}
	return x
}

func (r *refusals) list() []api.Refusal { return slices.Clone(r.all) }

// Refused takes one refused packet from the reader of NFLOG. A packet whose lease has ended
// meanwhile is dropped.
func (h *Helper) Refused(p Refused) {
	h.mu.Lock()
	b := h.numbers[p.Number]
	if b == nil {
		h.mu.Unlock()
		return
	}
	r := api.Refusal{
		Time: stamp(h.cfg.Now()), Lease: b.ID, Box: b.Name, Kind: api.RefusalKindAddress,
		Protocol: p.Protocol, Destination: p.To.Addr().String(), Port: int(p.To.Port()),
	}
	// A destination of the zone is never blamed on egress rules.
	if p.To.Addr() != b.Address && lease.InRange(p.To.Addr()) {
		for name, other := range h.names {
			if other.Address == p.To.Addr() {
				r.Kind, r.Name = api.RefusalKindZone, name
			}
		}
	}
	h.refused(b, r, p.To.String())
}

// refused counts a refusal and tells the watchers. h.mu is held, and given back.
func (h *Helper) refused(b *box, r api.Refusal, what string) {
	r = b.refused.add(r)
	h.mu.Unlock()
	if r.Count == 1 { // once for each destination: a box must not fill the journal
		h.log.Info("refused", "lease", b.ID, "box", b.Name, "kind", r.Kind, "protocol", r.Protocol,
			"destination", r.Destination, "port", r.Port, "name", r.Name)
	}
	h.events.send(b.UID, api.Event{Kind: api.EventKindRefusal, Time: r.Time, Lease: b.ID, Box: b.Name,
		Text: "refused " + r.Protocol + " " + what, Refusal: &r})
}

// RefusedName takes a name outside the zone that a confined box looked up, as the answerer tells it.
// The name is the box's own text. Without a lease number the asker's address tells the box, if it is
// a leased one.
func (h *Helper) RefusedName(number uint16, protocol string, from netip.Addr, name string) {
	h.mu.Lock()
	b := h.numbers[number]
	if number == 0 {
		b = h.holder(from.String())
	}
	if b == nil {
		h.mu.Unlock()
		return
	}
	name = api.Text(name)
	h.refused(b, api.Refusal{Time: stamp(h.cfg.Now()), Lease: b.ID, Box: b.Name, Kind: api.RefusalKindName,
		Protocol: protocol, Destination: name, Name: name}, "lookup of "+name)
}

// checkRefusals says how many refusals had no event.
func (h *Helper) checkRefusals(ctx context.Context) api.Check {
	refused, told, lost := h.refusalCounts(ctx)
	c := api.Check{Name: "refusals are told", State: api.CheckStateOK,
		Detail: fmt.Sprintf("%d packets refused since the table was filled, %d told", refused, told)}
	if lost > 0 {
		c.State, c.Loses = api.CheckStateWarning, "some refusals had no event and no line in the journal"
		c.Detail += fmt.Sprintf("; %d times they came faster than they were read", lost)
	}
	return c
}
