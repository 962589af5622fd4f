package helper

import (
	"encoding/json"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
)

// fakeAudience is what the answerer was told last.
type fakeAudience struct {
	mu    sync.Mutex
	wants bool
	asked int
	err   error
}

func (f *fakeAudience) Want(yes bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wants = yes
	f.asked++
	return f.err
}

func (f *fakeAudience) wanted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wants
}

// watchers says how many callers hear of events.
func (r *rig) watchers() int {
	r.h.events.mu.Lock()
	defer r.h.events.mu.Unlock()
	return len(r.h.events.watchers)
}

// watched is what a watcher of lookups gets next.
func (w *wire) watched() (api.Event, bool) {
	w.t.Helper()
	a, err := w.receive()
	var out api.WatchOut
	if err = errors.Join(err, json.Unmarshal(a.Parameters, &out)); err != nil || a.Error != "" {
		w.t.Fatalf("%s %v", a.Error, err)
	}
	return out.Event, a.Continues
}

const watchLookups = `{"method":"dev.minimal.Host.Watch","parameters":{"lookups":true},"more":true}`

// TestWhoHearsLookups: of a box its owner and root, of the host root alone, and who watches other
// events none. The answerer tells them only while somebody listens.
func TestWhoHearsLookups(t *testing.T) {
	answerer := &fakeAudience{}
	r := newRig(t, func(c *Config) { c.Audience, c.LookupsFor = answerer, time.Hour })
	w := r.dial(operatorUID, 10)
	web := r.box(w, api.PlanIn{Name: "web"}, 20)
	if answerer.asked != 0 {
		t.Error("the answerer is asked although nobody watches")
	}
	owner, other, root, plain := r.dial(operatorUID, 11), r.dial(otherUID, 12), r.dial(0, 13), r.dial(operatorUID, 14)
	for _, c := range []*wire{owner, other, root} {
		c.send(watchLookups)
	}
	plain.send(`{"method":"dev.minimal.Host.Watch","parameters":{},"more":true}`)
	r.eventually("four watch", func() bool { return r.watchers() == 4 })
	if !answerer.wanted() {
		t.Error("the answerer is not asked")
	}
	r.h.mu.Lock()
	number := r.h.boxes[web.Lease].Number
	r.h.mu.Unlock()
	from := netip.MustParseAddrPort("127.0.0.1:4242")
	r.h.LookedUp(Lookup{View: "host", Protocol: "udp", From: from, Name: "web.min.internal", Type: "A", Answer: "address"})
	r.h.LookedUp(Lookup{View: "box", Number: number, Protocol: "tcp", From: from, Name: "exa\x1bmple.com", Type: "AAAA", Answer: "outside", Missed: 7})
	r.h.LookedUp(Lookup{View: "host", Protocol: "udp", From: netip.MustParseAddrPort(web.Address + ":1"), Name: "own.address", Type: "A", Answer: "refused"})
	if e, more := root.watched(); !more || e.Box != "" || e.Text != "A web.min.internal: address (udp, 127.0.0.1:4242)" {
		t.Errorf("root hears of the host: %+v", e)
	}
	for name, c := range map[string]*wire{"root": root, "owner": owner} {
		e, _ := c.watched()
		want := api.Lookup{View: "box", Protocol: "tcp", Asker: "127.0.0.1:4242", Name: `exa\x1bmple.com`, Type: "AAAA", Answer: "outside", Missed: 7}
		if e.Kind != api.EventKindLookup || e.Box != "web" || e.Lookup == nil || *e.Lookup != want {
			t.Errorf("%s hears of the box: %+v %+v", name, e, e.Lookup)
		}
		if e, _ := c.watched(); e.Box != "web" || e.Lookup.Name != "own.address" {
			t.Errorf("%s hears of a lookup from the box's address: %+v", name, e)
		}
	}
	r.h.RefusedName(number, "udp", netip.Addr{}, "example.org")
	if e, _ := plain.watched(); e.Kind != api.EventKindRefusal {
		t.Errorf("who watches events hears %+v", e)
	}
	r.h.events.mu.Lock()
	for w := range r.h.events.watchers {
		if len(w.events) > 0 {
			t.Errorf("an event waits for somebody whom it does not concern: %+v", <-w.events)
		}
	}
	r.h.events.mu.Unlock()
	for i, c := range []*wire{owner, other, root} {
		if !answerer.wanted() {
			t.Error("the answerer is told to stop although somebody watches")
		}
		c.c.Close()
		r.eventually("one is gone", func() bool { return r.watchers() == 3-i })
	}
	r.eventually("the answerer stops", func() bool { return !answerer.wanted() })
}

// TestLookupsEnd: the minute ends, with an event that says so; a host without an answerer, a failure to
// ask it, and who is no operator are errors.
func TestLookupsEnd(t *testing.T) {
	answerer := &fakeAudience{}
	r := newRig(t, func(c *Config) { c.Audience, c.LookupsFor = answerer, 10*time.Millisecond })
	w := r.dial(operatorUID, 10)
	w.send(watchLookups)
	if e, more := w.watched(); more || e.Kind != api.EventKindLookup || e.Lookup != nil || e.Text != "lookups are told no longer: 10ms are over" {
		t.Errorf("the end is %+v, more: %v", e, more)
	}
	r.eventually("the answerer stops", func() bool { return !answerer.wanted() })
	if got := r.dial(strangerUID, 11).raw(watchLookups).Error; got != "dev.minimal.Host.NotAllowed" {
		t.Errorf("a stranger gets %q", got)
	}
	answerer.mu.Lock()
	answerer.err = errors.New("disk full")
	answerer.mu.Unlock()
	if got := r.dial(operatorUID, 12).raw(watchLookups).Error; got != "dev.minimal.Host.Internal" {
		t.Errorf("a failure gives %q", got)
	}
	without := newRig(t)
	if got := without.dial(operatorUID, 10).raw(watchLookups).Error; got != "dev.minimal.Host.NotSupported" {
		t.Errorf("without an answerer %q", got)
	}
}
