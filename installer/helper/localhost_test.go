package helper

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// fakeLocalhost is what the programs would know.
type fakeLocalhost struct {
	mu    sync.Mutex
	homes map[uint64]lease.Home
}

func (f *fakeLocalhost) Put(h lease.Home) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.homes[h.Leaf] = h
	return nil
}

func (f *fakeLocalhost) Delete(h lease.Home) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.homes, h.Leaf)
	return nil
}

func (f *fakeLocalhost) Sync(all []lease.Home) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.homes)
	for _, h := range all {
		f.homes[h.Leaf] = h
	}
	return nil
}

func (f *fakeLocalhost) all() []lease.Home {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.homes))
}

// TestHomesFollowLeases: a home is there from Plan to the end, with what the policy of now says; a helper that
// starts anew puts exactly those of boxes that live.
func TestHomesFollowLeases(t *testing.T) {
	f := &fakeLocalhost{homes: map[uint64]lease.Home{}}
	own := func(c *Config) { c.Localhost = f }
	r := newRig(t, own)
	w := r.dial(operatorUID, 10)
	deny, open := api.Policy{Egress: api.EgressDeny}, api.Policy{Egress: api.EgressOpen, Ingress: api.IngressPorts, IngressPorts: []int{80}}
	planned := w.plan(api.PlanIn{Name: "web", Policy: deny})
	if planned.Localhost != api.LocalhostOwn || planned.LocalhostCause != "" {
		t.Errorf("localhost %q, cause %q", planned.Localhost, planned.LocalhostCause)
	}
	if h := f.all(); len(h) != 1 || !h[0].Own || !h[0].UDPWildcards || h[0].Address.String() != planned.Address {
		t.Errorf("planned: %+v", h)
	}
	if err := w.call("Abandon", api.AbandonIn{Lease: planned.Lease}, nil); err != nil || len(f.all()) != 0 {
		t.Errorf("abandoned: %+v, %v", f.all(), err)
	}
	live := r.box(w, api.PlanIn{Policy: deny}, 20)
	if !strings.HasPrefix(live.Address, "127.65.") {
		t.Errorf("a box without a name has %q", live.Address)
	}
	if err := w.call("Update", api.UpdateIn{Lease: live.Lease, Secret: live.Secret, Policy: new(open)}, nil); err != nil {
		t.Fatal(err)
	}
	if h := f.all(); len(h) != 1 || h[0].UDPWildcards || !slices.Equal(h[0].OpenPorts, []uint16{80}) {
		t.Errorf("updated: %+v", h)
	}
	r.stop()
	f.homes[99] = lease.Home{Leaf: 99} // of a box that ended while no helper was there
	r.start(own)
	if h := f.all(); len(h) != 1 || h[0].Address.String() != live.Address || !h[0].Own {
		t.Errorf("after a restart: %+v", h)
	}
	w = r.dial(operatorUID, 10)
	if err := w.call("Teardown", api.TeardownIn{Lease: live.Lease, Secret: live.Secret, Kill: true}, nil); err != nil || len(f.all()) != 0 {
		t.Errorf("at the end: %+v, %v", f.all(), err)
	}
}

// TestWhoseLocalhost: what is asked for and what a host can do decide; the reply says which and why.
func TestWhoseLocalhost(t *testing.T) {
	for _, c := range []struct {
		name        string
		can         bool
		in          api.PlanIn
		want        api.Localhost
		cause, host string
	}{
		{"default", true, api.PlanIn{}, api.LocalhostOwn, "", "127.0.64.254"},
		{"own", true, api.PlanIn{Localhost: api.LocalhostOwn}, api.LocalhostOwn, "", "127.0.64.254"},
		{"shared", true, api.PlanIn{Localhost: api.LocalhostShared}, api.LocalhostShared, "", "127.0.0.1"},
		{"cannot", false, api.PlanIn{}, api.LocalhostShared, "no hook", "127.0.0.1"},
		{"cannot, own", false, api.PlanIn{Localhost: api.LocalhostOwn}, api.LocalhostShared, "no hook", "127.0.0.1"},
		{"cannot, shared", false, api.PlanIn{Localhost: api.LocalhostShared}, api.LocalhostShared, "", "127.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fakeLocalhost{homes: map[uint64]lease.Home{}}
			r := newRig(t, func(cfg *Config) {
				cfg.SharedLocalhost = "no hook"
				if c.can {
					cfg.Localhost = f
				}
			})
			w := r.dial(operatorUID, 10)
			c.in.Name, c.in.Policy = "web", api.Policy{Egress: api.EgressOpen}
			out := w.plan(c.in)
			if out.Localhost != c.want || out.LocalhostCause != c.cause || out.Net.Hosts[0].Address != c.host {
				t.Errorf("localhost %q, cause %q, host %q", out.Localhost, out.LocalhostCause, out.Net.Hosts[0].Address)
			}
			for _, h := range f.all() {
				if h.Own != (c.want == api.LocalhostOwn) || h.Address.String() != out.Address {
					t.Errorf("home %+v", h) // the address is guarded either way
				}
			}
			var list api.ListOut
			if err := w.call("List", nil, &list); err != nil || list.Leases[0].Localhost != c.want {
				t.Errorf("%+v, %v", list, err)
			}
		})
	}
	r := newRig(t)
	err := r.dial(operatorUID, 10).call("Plan", api.PlanIn{Mode: api.ModeNone, Policy: api.Policy{Egress: api.EgressDeny}, Localhost: api.LocalhostOwn}, nil)
	if shortName(err) != "InvalidArgument" {
		t.Errorf("own localhost in a namespace: %v", err)
	}
}

// TestExplainTheHost: the host as boxes see it is judged as what it leads to.
func TestExplainTheHost(t *testing.T) {
	f := &fakeLocalhost{homes: map[uint64]lease.Home{}}
	r := newRig(t, func(c *Config) { c.Localhost = f })
	w := r.dial(operatorUID, 10)
	r.box(w, api.PlanIn{Name: "web", Policy: api.Policy{Egress: api.EgressRules, Rules: []api.Rule{{To: "127.0.0.1", Ports: "5432", Protocol: api.ProtocolTCP}}}}, 20)
	for to, want := range map[string]bool{"127.0.64.254:5432": true, "127.0.64.254:5433": false, "127.0.0.1:5432": true} {
		var out api.ExplainOut
		if err := w.call("Explain", api.ExplainIn{Box: "web", Destination: to}, &out); err != nil || out.Allowed != want {
			t.Errorf("%s: %+v, %v", to, out, err)
		}
	}
}

// meddled is a localhost at which a test does something before a home is known.
type meddled struct {
	*fakeLocalhost
	put atomic.Pointer[func() error]
}

func (m *meddled) Put(h lease.Home) error {
	if put := m.put.Load(); put != nil {
		if err := (*put)(); err != nil {
			return err
		}
	}
	return m.fakeLocalhost.Put(h)
}

// TestHomeBeforeThePlan: nobody finds a box whose home is not known yet, so that nobody ends it in between: neither is a
// home left of a box that is gone, nor is a plan that fails here ended twice.
func TestHomeBeforeThePlan(t *testing.T) {
	for _, fails := range []error{nil, errors.New("injected")} {
		m := &meddled{fakeLocalhost: &fakeLocalhost{homes: map[uint64]lease.Home{}}}
		r := newRig(t, func(c *Config) { c.Localhost = m })
		w, root := r.dial(operatorUID, 10), r.dial(0, 11)
		put := func() error {
			r.h.mu.Lock()
			id := r.h.names["web"].ID
			r.h.mu.Unlock()
			if err := root.call("Abandon", api.AbandonIn{Lease: id}, nil); shortName(err) != "NoSuchLease" {
				t.Errorf("abandon in between: %v", err)
			}
			return fails
		}
		m.put.Store(&put)
		want := map[bool]string{true: "Internal"}[fails != nil]
		in := api.PlanIn{Name: "web", Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny}}
		if err := w.call("Plan", in, nil); shortName(err) != want {
			t.Errorf("plan: %v, want %q", err, want)
		}
		w.c.Close()
		r.atRest()
		if homes := m.all(); len(homes) != 0 {
			t.Errorf("homes are left: %+v", homes)
		}
	}
}

// TestRestOfTheRange: what is kept of addresses that were given back is kept of those that are given away again by it.
func TestRestOfTheRange(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Localhost = &fakeLocalhost{homes: map[uint64]lease.Home{}} })
	w := r.dial(operatorUID, 10)
	named := w.plan(api.PlanIn{Name: "web"})
	w.plan(api.PlanIn{})
	w.c.Close()
	r.atRest()
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if got := slices.Collect(maps.Keys(r.w.rest)); len(got) != 1 || got[0].String() != named.Address {
		t.Errorf("kept: %v", got)
	}
}

// TestDialled: the host as boxes see it is the host's localhost to those that have their own, and to nobody else.
func TestDialled(t *testing.T) {
	host, its := netip.AddrPortFrom(lease.HostAddress(), 80), netip.MustParseAddrPort("127.0.0.1:80")
	other := netip.MustParseAddrPort("192.0.2.7:80")
	for _, c := range []struct {
		own      bool
		mode     lease.Mode
		to, want netip.AddrPort
	}{{true, lease.ModeHost, host, its}, {true, lease.ModeHost, other, other}, {true, lease.ModeOwnIP, host, host}, {false, lease.ModeHost, host, host}} {
		r := newRig(t, func(cfg *Config) {
			if c.own {
				cfg.Localhost = &fakeLocalhost{homes: map[uint64]lease.Home{}}
			}
		})
		if got := r.h.dialled(lease.Lease{Mode: c.mode}, c.to); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
