package helper

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// Waiting is a socket of this host that waits for peers, and the cgroup that it was made in.
type Waiting struct {
	UDP   bool
	Local netip.AddrPort
	Group uint64
}

// Listeners lists the sockets that wait for peers (linux/listeners).
type Listeners interface {
	List(ctx context.Context) ([]Waiting, error)
}

// noBrowser are well-known TCP ports of services that a browser has nothing to say to.
var noBrowser = []uint16{21, 22, 25, 53, 110, 143, 389, 465, 587, 636, 993, 995, 1433, 3306, 5432, 5672, 6379, 9042, 11211, 27017}

// listenerOf is how a socket of a box is shown.
func listenerOf(b lease.Lease, w Waiting) api.Listener {
	l := api.Listener{Protocol: api.ProtocolTCP, Address: w.Local.Addr().String(), Port: int(w.Local.Port())}
	if w.UDP {
		l.Protocol = api.ProtocolUDP
		return l
	}
	if !slices.Contains(noBrowser, w.Local.Port()) {
		l.URL = urlOf(b, w.Local)
	}
	return l
}

// urlOf says where a browser on this host finds a listener: by the name of the box, where it listens on
// the address that the name has.
func urlOf(b lease.Lease, at netip.AddrPort) string {
	host := at.Addr().String()
	switch {
	case b.Name != "" && (at.Addr() == b.Address || at.Addr().IsUnspecified()):
		host = b.Name + zone
	case at.Addr().IsUnspecified() && b.Address.IsValid():
		host = b.Address.String()
	case at.Addr().IsUnspecified():
		host = "127.0.0.1"
	}
	scheme := "http"
	if at.Port() == 443 || at.Port() == 8443 {
		scheme = "https"
	}
	if at.Port() == 80 || at.Port() == 443 {
		if at.Addr().Is6() && host == at.Addr().String() {
			host = "[" + host + "]"
		}
		return scheme + "://" + host
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(int(at.Port())))
}

// listening lists what waits in each box, by lease id: sorted, each once. Empty where the host cannot
// tell.
func (h *Helper) listening(ctx context.Context) (map[string][]api.Listener, error) {
	if h.cfg.Listeners == nil {
		return nil, nil
	}
	sockets, err := h.cfg.Listeners.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("listeners: %w", err)
	}
	if len(sockets) == 0 {
		return nil, nil
	}
	groups := h.groups()
	out := map[string][]api.Listener{}
	for _, s := range sockets {
		if b, known := groups[s.Group]; known {
			out[b.ID] = append(out[b.ID], listenerOf(b, s))
		}
	}
	for id, list := range out {
		slices.SortFunc(list, func(a, b api.Listener) int {
			return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Address, b.Address))
		})
		out[id] = slices.Compact(list)
	}
	return out, nil
}

// groups tells whose each cgroup in a leaf or below it is: as the lease was when this looked, for it
// changes under the lock alone. A box that goes meanwhile is left out.
func (h *Helper) groups() map[uint64]lease.Lease {
	type held struct {
		lease lease.Lease
		leaf  Leaf
	}
	h.mu.Lock()
	var all []held
	for _, b := range h.boxes {
		if b.leaf != nil && b.State == lease.Attached {
			all = append(all, held{b.Lease, b.leaf})
		}
	}
	h.mu.Unlock()
	out := map[uint64]lease.Lease{}
	for _, b := range all {
		ids, err := b.leaf.IDs()
		if err != nil {
			continue
		}
		for _, id := range ids {
			out[id] = b.lease
		}
	}
	return out
}

// WatchListeners looks once in a while, as long as somebody watches, and tells which listeners came and
// went.
func (h *Helper) WatchListeners(ctx context.Context) {
	for h.cfg.Listeners != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(h.cfg.LookAfter):
		}
		if h.events.watched() {
			h.lookAtListeners(ctx)
		}
	}
}

// lookAtListeners tells what changed since the look before. Who starts to watch looks first, so that what
// was there already is no news.
func (h *Helper) lookAtListeners(ctx context.Context) {
	h.looking.Lock()
	defer h.looking.Unlock()
	now, err := h.listening(ctx)
	if err != nil {
		h.log.Warn("look at listeners", "cause", err)
		return
	}
	before := h.heard
	h.heard = now
	for id, list := range before {
		h.tellListeners(id, api.EventKindClosed, "stopped listening on ", list, now[id])
	}
	for id, list := range now {
		h.tellListeners(id, api.EventKindListening, "listens on ", list, before[id])
	}
}

// tellListeners sends one event for each of these that is not among others. A box that is gone took its
// listeners with it: that is told already.
func (h *Helper) tellListeners(id string, kind api.EventKind, what string, these, others []api.Listener) {
	h.mu.Lock()
	b := h.boxes[id]
	h.mu.Unlock()
	if b == nil {
		return
	}
	for _, l := range these {
		if !slices.Contains(others, l) {
			h.tell(b, kind, what+describe(l))
		}
	}
}

// describe is a listener in a line for people.
func describe(l api.Listener) string {
	if l.URL != "" {
		return l.URL
	}
	return string(l.Protocol) + " " + net.JoinHostPort(l.Address, strconv.Itoa(l.Port))
}
