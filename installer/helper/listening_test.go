package helper

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// fakeListeners are the sockets that wait now.
type fakeListeners struct {
	mu      sync.Mutex
	sockets []Waiting
	looks   int
}

func (f *fakeListeners) List(context.Context) ([]Waiting, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	return slices.Clone(f.sockets), nil
}

func (f *fakeListeners) set(s ...Waiting) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sockets = s
}

func (r *rig) inode(id string) uint64 {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	return r.w.leaves[id].node
}

func waiting(at string, group uint64) Waiting {
	return Waiting{Local: netip.MustParseAddrPort(at), Group: group}
}

// List shows what waits in the caller's own boxes, each once and in order; another's listeners stay
// unseen.
func TestListeners(t *testing.T) {
	f := &fakeListeners{}
	r := newRig(t, func(c *Config) { c.Listeners = f })
	w := r.dial(operatorUID, 10)
	out := r.box(w, api.PlanIn{Name: "web"}, 20)
	leaf := r.inode(out.Lease)
	dns := waiting("127.0.64.1:53", leaf)
	dns.UDP = true
	f.set(waiting("127.0.64.1:3000", leaf), waiting("127.0.64.1:3000", leaf), dns, waiting("127.0.0.1:22", 1), waiting("127.0.64.1:80", leaf))
	var list api.ListOut
	if err := w.call("List", nil, &list); err != nil {
		t.Fatal(err)
	}
	want := []api.Listener{
		{Protocol: api.ProtocolTCP, Address: "127.0.64.1", Port: 80, URL: "http://web.min.internal"},
		{Protocol: api.ProtocolTCP, Address: "127.0.64.1", Port: 3000, URL: "http://web.min.internal:3000"},
		{Protocol: api.ProtocolUDP, Address: "127.0.64.1", Port: 53},
	}
	if !slices.Equal(list.Leases[0].Listeners, want) {
		t.Errorf("listeners %+v", list.Leases[0].Listeners)
	}
	list = api.ListOut{}
	if err := r.dial(otherUID, 11).call("List", nil, &list); err != nil || len(list.Leases) != 1 || list.Leases[0].Listeners != nil {
		t.Errorf("a stranger sees %+v, %v", list.Leases, err)
	}
}

// Where a browser finds a listener.
func TestURLOf(t *testing.T) {
	named := lease.Lease{Name: "web", Address: netip.MustParseAddr("127.0.64.1")}
	nameless := lease.Lease{Address: netip.MustParseAddr("127.65.0.1")}
	for _, c := range []struct {
		box  lease.Lease
		at   string
		want string
	}{
		{named, "127.0.64.1:3000", "http://web.min.internal:3000"},
		{named, "127.0.64.1:80", "http://web.min.internal"},
		{named, "127.0.64.1:443", "https://web.min.internal"},
		{named, "127.0.64.1:8443", "https://web.min.internal:8443"},
		{named, "0.0.0.0:3000", "http://web.min.internal:3000"},
		{named, "[::]:3000", "http://web.min.internal:3000"},
		{named, "127.0.0.1:3000", "http://127.0.0.1:3000"},
		{named, "[::1]:80", "http://[::1]"},
		{named, "[::1]:3000", "http://[::1]:3000"},
		{named, "127.0.64.1:5432", ""},
		{nameless, "127.65.0.1:3000", "http://127.65.0.1:3000"},
		{nameless, "0.0.0.0:3000", "http://127.65.0.1:3000"},
		{lease.Lease{}, "[::]:3000", "http://127.0.0.1:3000"},
	} {
		if got := listenerOf(c.box, waiting(c.at, 1)).URL; got != c.want {
			t.Errorf("%s at %s: %q, want %q", c.box.Name, c.at, got, c.want)
		}
	}
}

// Who watches hears of listeners that come and go, not of those that were there before; nobody looks
// while nobody watches.
func TestListenerEvents(t *testing.T) {
	f := &fakeListeners{}
	r := newRig(t, func(c *Config) { c.Listeners, c.LookAfter = f, time.Millisecond })
	w := r.dial(operatorUID, 10)
	out := r.box(w, api.PlanIn{Name: "web"}, 20)
	leaf := r.inode(out.Lease)
	f.set(waiting("127.0.64.1:80", leaf))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { r.h.WatchListeners(ctx); close(done) }()
	defer func() { cancel(); <-done }()
	for range 10 {
		<-tick()
	}
	f.mu.Lock()
	if f.looks != 0 {
		t.Errorf("%d looks while nobody watches", f.looks)
	}
	f.mu.Unlock()
	heard := make(chan api.Event, 10)
	watching := &watcher{uid: operatorUID, events: heard}
	r.h.lookAtListeners(ctx)
	r.h.events.add(watching)
	defer r.h.events.remove(watching)
	for _, step := range []struct {
		now  []Waiting
		kind api.EventKind
		text string
	}{
		{[]Waiting{waiting("127.0.64.1:80", leaf), waiting("127.0.64.1:5432", leaf)}, api.EventKindListening, "listens on tcp 127.0.64.1:5432"},
		{[]Waiting{waiting("127.0.64.1:5432", leaf)}, api.EventKindClosed, "stopped listening on http://web.min.internal"},
	} {
		f.set(step.now...)
		e := <-heard
		if e.Kind != step.kind || e.Text != step.text || e.Box != "web" {
			t.Errorf("event %+v", e)
		}
	}
}
