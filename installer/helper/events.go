package helper

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/varlink/go/varlink"
)

// maxPending is how many events a watcher may be behind; more are dropped for it.
const maxPending = 256

// hub hands events to watchers. A slow watcher holds nobody up.
type hub struct {
	mu       sync.Mutex
	watchers map[*watcher]bool
	// missed happened while no helper lived: who watches first is told.
	missed []missed
}

type missed struct {
	uid   uint32
	event api.Event
}

type watcher struct {
	uid     uint32 // 0 sees all
	lease   string // "" sees every lease of uid
	lookups bool   // and nothing else; without it everything else
	events  chan api.Event
}

func (u *hub) add(w *watcher) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.watchers == nil {
		u.watchers = map[*watcher]bool{}
	}
	u.watchers[w] = true
	u.missed = slices.DeleteFunc(u.missed, func(m missed) bool { return w.offer(m.uid, m.event) })
}

// miss keeps an event until somebody watches, or its box is gone.
func (u *hub) miss(uid uint32, e api.Event) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.missed = append(u.missed, missed{uid, e})
}

// offer gives a watcher an event that it asked for, unless it is too far behind.
func (w *watcher) offer(uid uint32, e api.Event) bool {
	if w.uid != 0 && w.uid != uid || w.lease != "" && w.lease != e.Lease || w.lookups != (e.Kind == api.EventKindLookup) {
		return false
	}
	select {
	case w.events <- e:
		return true
	default:
		return false
	}
}

func (u *hub) remove(w *watcher) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.watchers, w)
}

// watched says whether anybody would hear an event.
func (u *hub) watched() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.watchers) > 0
}

func (u *hub) send(uid uint32, e api.Event) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for w := range u.watchers {
		w.offer(uid, e)
	}
	if e.Kind == api.EventKindGone {
		u.missed = slices.DeleteFunc(u.missed, func(m missed) bool { return m.event.Lease == e.Lease })
	}
}

// tell sends an event about a box.
func (h *Helper) tell(b *box, kind api.EventKind, what string) {
	h.events.send(b.UID, api.Event{Kind: kind, Time: stamp(h.cfg.Now()), Lease: b.ID, Box: b.Name, Text: what})
}

// watch streams events until the connection closes or the one lease ends.
func (h *Helper) watch(ctx context.Context, c *caller, call *varlink.Call) error {
	var in api.WatchIn
	if call.In.Parameters != nil {
		if err := call.GetParameters(&in); err != nil {
			return h.reply(ctx, call, &api.Malformed{Message: "parameters: " + err.Error()})
		}
	}
	if !call.WantsMore() {
		return h.reply(ctx, call, &api.InvalidArgument{Field: "more", Message: "Watch sends many replies: call it with more", Next: "set more in the call"})
	}
	w := &watcher{uid: c.peer.UID, events: make(chan api.Event, maxPending)}
	var over chan struct{}
	if in.Lease != "" {
		h.mu.Lock()
		b, _ := h.find(in.Lease)
		if b == nil {
			b = h.names[in.Lease]
		}
		mine := b != nil && (b.UID == c.peer.UID || c.root())
		if mine {
			w.lease, over = b.ID, b.over
		}
		h.mu.Unlock()
		if !mine {
			return h.reply(ctx, call, noSuchLease(in.Lease))
		}
	}
	if in.Lookups {
		return h.watchLookups(ctx, call, w)
	}
	h.lookAtListeners(ctx)
	h.events.add(w)
	defer h.events.remove(w)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-w.events:
			call.Continues = e.Kind != api.EventKindGone || w.lease == ""
			if err := call.Reply(ctx, api.WatchOut{Event: e}); err != nil || !call.Continues {
				return err
			}
		case <-over:
			// gone was sent before; when the queue was full it is missing, and this says it.
			if len(w.events) == 0 {
				call.Continues = false
				return call.Reply(ctx, api.WatchOut{Event: api.Event{Kind: api.EventKindGone, Time: stamp(h.cfg.Now()), Lease: w.lease, Text: "gone"}})
			}
			e := <-w.events
			call.Continues = e.Kind != api.EventKindGone
			if err := call.Reply(ctx, api.WatchOut{Event: e}); err != nil || !call.Continues {
				return err
			}
		}
	}
}

// stamp is how times are written: RFC 3339, UTC.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
