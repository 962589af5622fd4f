package helper

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/varlink/go/varlink"
)

// Audience tells the answerer whether somebody wants to hear of every lookup. The answerer forgets by
// itself, a minute behind the last yes.
type Audience interface{ Want(yes bool) error }

// audience is who listens to lookups now.
type audience struct {
	mu      sync.Mutex
	callers int
}

// join begins, or begins anew, the minute of the answerer.
func (a *audience) join(tell Audience) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := tell.Want(true); err != nil {
		return err
	}
	a.callers++
	return nil
}

func (a *audience) leave(tell Audience) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.callers--; a.callers > 0 {
		return nil
	}
	return tell.Want(false)
}

// watchLookups streams lookups for a minute, or until the connection closes.
func (h *Helper) watchLookups(ctx context.Context, call *varlink.Call, w *watcher) error {
	if h.cfg.Audience == nil {
		return h.reply(ctx, call, &api.NotSupported{Message: "nobody tells the helper of lookups on this host", Next: "minhost status"})
	}
	if err := h.audience.join(h.cfg.Audience); err != nil {
		return h.reply(ctx, call, internal("ask the answerer", err))
	}
	defer func() {
		if err := h.audience.leave(h.cfg.Audience); err != nil {
			h.log.Warn("lookups are told on until the minute is over", "cause", err)
		}
	}()
	h.log.Info("lookups are watched", "uid", w.uid, "lease", w.lease)
	w.lookups = true
	h.events.add(w)
	defer h.events.remove(w)
	end := time.NewTimer(h.cfg.LookupsFor)
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-w.events:
			call.Continues = true
			if err := call.Reply(ctx, api.WatchOut{Event: e}); err != nil {
				return err
			}
		case <-end.C:
			call.Continues = false
			return call.Reply(ctx, api.WatchOut{Event: api.Event{Kind: api.EventKindLookup, Time: stamp(h.cfg.Now()), Lease: w.lease,
				Text: "lookups are told no longer: " + h.cfg.LookupsFor.String() + " are over"}})
		}
	}
}

// Lookup is one lookup, as the answerer tells it.
type Lookup struct {
	Number   uint16 // lease number, 0 when the lookup is no box's or its box is not known
	View     string // "host" or "box"
	Protocol string // "tcp" or "udp"
	From     netip.AddrPort
	Name     string // the asker's own text
	Type     string
	Answer   string
	Missed   uint64 // before this one
}

// LookedUp takes a lookup. Who owns its box hears of it, and root; of one that is no box's root alone.
func (h *Helper) LookedUp(l Lookup) {
	e := api.Event{Kind: api.EventKindLookup, Time: stamp(h.cfg.Now()), Lookup: &api.Lookup{
		View: l.View, Protocol: api.Protocol(l.Protocol), Asker: l.From.String(), Name: api.Text(l.Name),
		Type: l.Type, Answer: l.Answer, Missed: int(l.Missed)}}
	e.Text = fmt.Sprintf("%s %s: %s (%s, %s)", e.Lookup.Type, e.Lookup.Name, l.Answer, l.Protocol, e.Lookup.Asker)
	if l.Missed > 0 {
		e.Text += fmt.Sprintf("; %d before it came too fast to be told", l.Missed)
	}
	owner := uint32(0)
	h.mu.Lock()
	b := h.numbers[l.Number]
	if l.Number == 0 {
		b = h.holder(l.From.Addr().String())
	}
	if b != nil {
		owner, e.Lease, e.Box = b.UID, b.ID, b.Name
	}
	h.mu.Unlock()
	h.events.send(owner, e)
}
