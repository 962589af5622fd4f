package resolved

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer"
)

// fakeHost models kernel and resolved together: a link that goes takes its state along, and a
// scope opens only for a link that is up with an address of global scope.
type fakeHost struct {
	link     *Link
	next     int
	state    map[int]State
	running  bool
	servers  []Server
	fallback []Server
	late     int // so many calls pass until resolved hears of a new link
	answers  bool
	// file is the delegate of the file of ours that resolved has loaded; old: it knows none.
	file    *Delegate
	old     bool
	sets    []int
	reverts int

	createErr, setErr error
}

func newFakeHost() *fakeHost {
	uplink := Server{2, netip.MustParseAddrPort("192.168.20.1:53")}
	fallback := Server{0, netip.MustParseAddrPort("1.1.1.1:53")}
	return &fakeHost{next: 10, state: map[int]State{}, running: true, servers: []Server{uplink}, fallback: []Server{fallback}, answers: true, old: true}
}

func (h *fakeHost) Find(context.Context, string) (Link, bool, error) {
	if h.link == nil {
		return Link{}, false, nil
	}
	return *h.link, true, nil
}

func (h *fakeHost) Create(_ context.Context, _ string, a netip.Prefix) (Link, error) {
	if h.createErr != nil {
		return Link{}, h.createErr
	}
	if h.link != nil {
		return Link{}, errors.New("file exists")
	}
	h.next++
	h.link = &Link{Index: h.next, Kind: "dummy", Ours: true, Up: true, Addrs: []netip.Prefix{a}}
	return *h.link, nil
}

func (h *fakeHost) Delete(context.Context, string) error {
	if h.link != nil && !h.link.Ours {
		return errors.New("not made by minhost")
	}
	if h.link != nil {
		delete(h.state, h.link.Index)
	}
	h.link = nil
	return nil
}

func (h *fakeHost) Running(context.Context) (bool, error) { return h.running, nil }

func (h *fakeHost) Servers(context.Context) (servers, fallback []Server, err error) {
	servers = slices.Clone(h.servers)
	for i, s := range h.state {
		for _, a := range s.Servers {
			servers = append(servers, Server{i, a}, Server{1, a})
		}
	}
	return servers, h.fallback, nil
}

func (h *fakeHost) Link(_ context.Context, index int) (State, error) {
	if h.link == nil || h.link.Index != index {
		return State{}, ErrNoLink
	}
	s := h.state[index]
	if h.link.Up && len(s.Servers) > 0 {
		s.Scopes = scopeDNS
	}
	return s, nil
}

func (h *fakeHost) Set(_ context.Context, index int, want State) error {
	if h.late > 0 {
		h.late--
		return ErrNoLink
	}
	h.sets = append(h.sets, index)
	if h.setErr != nil {
		h.state[index] = State{Servers: want.Servers} // half done
		return h.setErr
	}
	h.state[index] = want
	return nil
}

func (h *fakeHost) Revert(_ context.Context, index int) error {
	h.reverts++
	delete(h.state, index)
	return nil
}

func (h *fakeHost) Delegate(context.Context, string) (Delegate, error) {
	if h.old {
		return Delegate{}, ErrNoDelegates
	}
	if h.file == nil {
		return Delegate{}, ErrNoDelegate
	}
	return *h.file, nil
}

func (h *fakeHost) Resolve(context.Context, string) ([]netip.Addr, error) {
	if !h.answers {
		return nil, errors.New("connection refused")
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

func stub() (Facts, error) {
	return Facts{ResolvConf: "nameserver 127.0.0.53\n", NSSwitch: "hosts: files dns\n"}, nil
}

func lab() (*NamesStep, *fakeHost) {
	h := newFakeHost()
	return &NamesStep{Params: DefaultParams(), Facts: stub, Links: h, Bus: h, Settle: time.Second}, h
}

func probe(t *testing.T, s *NamesStep, state installer.State, detail string) {
	t.Helper()
	obs, err := s.Probe(t.Context())
	if err != nil || obs.State != state || !strings.Contains(obs.Detail, detail) || (obs.State == installer.Satisfied) != (obs.Loses == "") {
		t.Fatalf("%s %q, loses %q, %v; want %s, %q", obs.State, obs.Detail, obs.Loses, err, state, detail)
	}
}

func apply(t *testing.T, s *NamesStep) {
	t.Helper()
	if err := s.Apply(t.Context(), &installer.Record{}); err != nil {
		t.Fatal(err)
	}
}

func TestNamesCycle(t *testing.T) {
	s, h := lab()
	h.late = 2
	probe(t, s, installer.Absent, "no link min0")
	apply(t, s)
	probe(t, s, installer.Satisfied, "glibc: yes; static Go programs, musl and dig: yes")
	if got := h.state[h.link.Index]; len(s.Params.differs(State{Scopes: 1, DefaultRoute: got.DefaultRoute, Servers: got.Servers, Domains: got.Domains, DNSOverTLS: got.DNSOverTLS, DNSSEC: got.DNSSEC, LLMNR: got.LLMNR, MulticastDNS: got.MulticastDNS})) != 0 {
		t.Errorf("state %+v", got)
	}
	if err := s.Undo(t.Context(), installer.Record{}); err != nil || h.link != nil {
		t.Errorf("undo: %v, %v", err, h.link)
	}
	probe(t, s, installer.Absent, "no link min0")
	if err := s.Undo(t.Context(), installer.Record{}); err != nil {
		t.Errorf("second undo: %v", err)
	}
}

func TestNamesDrift(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fakeHost, *State)
		detail string
	}{
		"default route":      {func(_ *fakeHost, s *State) { s.DefaultRoute = true }, "default route"},
		"server replaced":    {func(_ *fakeHost, s *State) { s.Servers = []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:53")} }, "servers of min0"},
		"server port":        {func(_ *fakeHost, s *State) { s.Servers = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:53")} }, "127.0.0.1:53"},
		"domain gone":        {func(_ *fakeHost, s *State) { s.Domains = nil }, "domains of min0"},
		"search domain":      {func(_ *fakeHost, s *State) { s.Domains[0].RoutingOnly = false }, "domains of min0"},
		"TLS inherited":      {func(_ *fakeHost, s *State) { s.DNSOverTLS = "yes" }, "DNSOverTLS"},
		"DNSSEC inherited":   {func(_ *fakeHost, s *State) { s.DNSSEC = "yes" }, "DNSSEC"},
		"LLMNR":              {func(_ *fakeHost, s *State) { s.LLMNR = "yes" }, "LLMNR"},
		"mDNS":               {func(_ *fakeHost, s *State) { s.MulticastDNS = "resolve" }, "MulticastDNS"},
		"settings forgotten": {func(_ *fakeHost, s *State) { *s = State{} }, "no DNS scope"},
		"link down":          {func(h *fakeHost, _ *State) { h.link.Up = false }, "is down or has lost 192.0.2.53/32"},
		"address gone":       {func(h *fakeHost, _ *State) { h.link.Addrs = nil }, "is down or has lost"},
	} {
		s, h := lab()
		apply(t, s)
		st := h.state[h.link.Index]
		st.Domains = slices.Clone(st.Domains)
		c.change(h, &st)
		h.state[h.link.Index] = st
		probe(t, s, installer.Drifted, c.detail)
		apply(t, s)
		t.Log(name)
		probe(t, s, installer.Satisfied, "")
		// Only another server has lookups that wait for it.
		if want := map[bool]int{true: 1}[strings.HasPrefix(name, "server ")]; h.reverts != want {
			t.Errorf("%d reverts, want %d", h.reverts, want)
		}
	}
}

func TestNamesAnswererDown(t *testing.T) {
	s, h := lab()
	apply(t, s)
	h.answers = false
	probe(t, s, installer.Drifted, "connection refused")
}

func TestNamesBlocked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*NamesStep, *fakeHost)
		detail string
	}{
		"no resolved": {func(_ *NamesStep, h *fakeHost) { h.running = false }, "systemd-resolved does not run"},
		"bypassed": {func(s *NamesStep, _ *fakeHost) {
			s.Facts = func() (Facts, error) { return Facts{ResolvConf: "nameserver 10.1.1.1\n"}, nil }
		}, "names 10.1.1.1 instead of 127.0.0.53"},
		"WSL": {func(s *NamesStep, _ *fakeHost) {
			s.Facts = func() (Facts, error) { return Facts{ResolvConf: "nameserver 10.255.255.254\n", WSL: true}, nil }
		}, "WSL"},
		"NixOS": {func(s *NamesStep, _ *fakeHost) {
			s.Facts = func() (Facts, error) { f, _ := stub(); f.NixOS = true; return f, nil }
		}, "NixOS"},
		"fallback only": {func(_ *NamesStep, h *fakeHost) { h.servers = nil }, "FallbackDNS="},
	} {
		s, h := lab()
		c.change(s, h)
		probe(t, s, installer.Blocked, c.detail)
		if obs, _ := s.Probe(t.Context()); obs.Next != "dig @127.0.0.1 -p 15353 NAME.min.internal" {
			t.Errorf("%s: next %q", name, obs.Next)
		}
	}
}

// TestNamesFallbackLater: the servers went away between probe and apply, or while the link is there.
func TestNamesFallbackLater(t *testing.T) {
	s, h := lab()
	h.servers = nil
	if err := s.Apply(t.Context(), &installer.Record{}); err == nil || h.link != nil || len(h.sets) != 0 {
		t.Errorf("apply: %v, link %v", err, h.link)
	}
	h.servers = newFakeHost().servers
	apply(t, s)
	h.servers = nil
	probe(t, s, installer.Blocked, "FallbackDNS=")
	// No fallback either: nothing is taken away from a host that resolves nothing.
	h.fallback = nil
	probe(t, s, installer.Satisfied, "")
}

func TestNamesRollBack(t *testing.T) {
	for name, change := range map[string]func(*fakeHost){
		"no driver":     func(h *fakeHost) { h.createErr = errors.New("the kernel has no driver") },
		"managed":       func(h *fakeHost) { h.setErr = ErrManaged },
		"answerer down": func(h *fakeHost) { h.answers = false },
		"never heard":   func(h *fakeHost) { h.late = 1 << 30 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, h := lab()
			change(h)
			if err := s.Apply(t.Context(), &installer.Record{}); err == nil {
				t.Error("no error")
			}
			if h.link != nil || len(h.state) != 0 {
				t.Errorf("left over: link %v, state %v", h.link, h.state)
			}
		})
	}
}

func TestNamesForeign(t *testing.T) {
	s, h := lab()
	h.link = &Link{Index: 5, Kind: "bridge", Up: true}
	probe(t, s, installer.Foreign, "minhost did not make")
	if err := s.Apply(t.Context(), &installer.Record{}); err == nil {
		t.Error("apply over a foreign link")
	}
	if err := s.Undo(t.Context(), installer.Record{}); err == nil || h.link == nil || len(h.sets) != 0 {
		t.Errorf("undo: %v, link %v, sets %v", err, h.link, h.sets)
	}
}

// keeper makes the link again for as long as it runs, as the service does.
type keeper struct {
	h      *fakeHost
	active bool
	calls  []string
}

func (k *keeper) Active(context.Context) (bool, error) { return k.active, nil }

func (k *keeper) Start(context.Context) error {
	k.active, k.calls = true, append(k.calls, "start")
	return nil
}

func (k *keeper) Stop(context.Context) error {
	if k.h.link == nil {
		k.calls = append(k.calls, "too late")
	}
	k.active, k.calls = false, append(k.calls, "stop")
	return nil
}

// TestNamesKeeper: the service runs from the first apply on, and is stopped before its link is taken.
func TestNamesKeeper(t *testing.T) {
	s, h := lab()
	k := &keeper{h: h}
	s.Keeper = k
	apply(t, s)
	probe(t, s, installer.Satisfied, "")
	k.active = false
	probe(t, s, installer.Drifted, "nobody keeps the names")
	apply(t, s)
	probe(t, s, installer.Satisfied, "")
	if err := s.Undo(t.Context(), installer.Record{}); err != nil || h.link != nil {
		t.Errorf("undo: %v, %v", err, h.link)
	}
	if want := []string{"start", "start", "stop"}; !slices.Equal(k.calls, want) {
		t.Errorf("calls %v, want %v", k.calls, want)
	}
}
