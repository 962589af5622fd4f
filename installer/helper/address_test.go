package helper

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// asked is a Range that says which addresses it was asked about, answers as a test wants, and waits where the test
// lets it.
type asked struct {
	mu    sync.Mutex
	used  func(netip.Addr) bool
	wait  func(netip.Addr)
	addrs []netip.Addr
}

func (a *asked) Free(x netip.Addr) error {
	a.mu.Lock()
	a.addrs = append(a.addrs, x)
	used, wait := a.used, a.wait
	a.mu.Unlock()
	if wait != nil {
		wait(x)
	}
	if used != nil && used(x) {
		return fmt.Errorf("a socket is bound to %s", x)
	}
	return nil
}

// all says from now on that every address is used, and forgets which it was asked about.
func (a *asked) all() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used, a.addrs = func(netip.Addr) bool { return true }, nil
}

func (a *asked) times() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.addrs)
}

func hostPlan(name string) api.PlanIn {
	return api.PlanIn{Name: name, Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny}}
}

// TestAddressInUse: an address that somebody uses is not given, the next one is; and a plan that finds none is an
// error that leaves nothing.
func TestAddressInUse(t *testing.T) {
	first := netip.MustParseAddr("127.0.64.1")
	hosts := &asked{used: func(a netip.Addr) bool { return a == first }}
	r := newRig(t, func(c *Config) { c.Range = hosts })
	w := r.dial(operatorUID, 10)
	if out := w.plan(api.PlanIn{Name: "web"}); out.Address != "127.0.64.2" {
		t.Errorf("given %s", out.Address)
	}
	hosts.all()
	if err := w.call("Plan", hostPlan("api"), nil); shortName(err) != "NoAddress" {
		t.Errorf("no address: %v", err)
	}
	if n := hosts.times(); n != 252 {
		t.Errorf("asked about %d addresses, of 253 with one held", n)
	}
	r.h.mu.Lock()
	boxes, numbers, names, plans := len(r.h.boxes), len(r.h.numbers), len(r.h.names), r.h.counts.plans
	r.h.mu.Unlock()
	if leaves, _ := r.w.List(); boxes != 1 || numbers != 1 || names != 1 || plans != 1 || len(leaves) != 1 {
		t.Errorf("left: %d boxes, %d numbers, %d names, %d plans, leaves %v", boxes, numbers, names, plans, leaves)
	}
}

// TestUnpublishedInUse: a box without a name has an address by its number, so it gets other numbers until one's address
// is nobody's; behind sixteen it shares the host's localhost.
func TestUnpublishedInUse(t *testing.T) {
	hosts := &asked{used: func(a netip.Addr) bool { return a != lease.Unpublished(5) }}
	r := newRig(t, func(c *Config) { c.Range, c.Localhost = hosts, &fakeLocalhost{homes: map[uint64]lease.Home{}} })
	w := r.dial(operatorUID, 10)
	out := w.plan(api.PlanIn{})
	if out.Address != lease.Unpublished(5).String() || out.Localhost != api.LocalhostOwn {
		t.Errorf("given %q, localhost %s", out.Address, out.Localhost)
	}
	r.h.mu.Lock()
	b := r.h.numbers[5]
	if b == nil || b.ID != out.Lease || len(r.h.numbers) != 1 {
		t.Errorf("numbers: %v", r.h.numbers)
	}
	r.h.mu.Unlock()
	hosts.all()
	if out := w.plan(api.PlanIn{}); out.Address != "" || out.Localhost != api.LocalhostShared || out.LocalhostCause == "" {
		t.Errorf("given %q, localhost %s, cause %q", out.Address, out.Localhost, out.LocalhostCause)
	}
	if n := hosts.times(); n != numberTries {
		t.Errorf("asked %d times", n)
	}
}

// TestAddressQuestionWaits: while the kernel looks for sockets at one box's address, others plan and are listed, and
// nobody finds the one that is not planned yet. The address is held meanwhile.
func TestAddressQuestionWaits(t *testing.T) {
	first := netip.MustParseAddr("127.0.64.1")
	reached, release := make(chan struct{}), make(chan struct{})
	hosts := &asked{wait: func(a netip.Addr) {
		if a == first {
			close(reached)
			<-release
		}
	}}
	r := newRig(t, func(c *Config) { c.Range = hosts })
	w, other := r.dial(operatorUID, 10), r.dial(operatorUID, 11)
	planned := make(chan error, 1)
	go func() { planned <- w.call("Plan", hostPlan("web"), nil) }()
	select {
	case <-reached:
	case err := <-planned:
		t.Fatal(err)
	}
	if err := other.call("Plan", hostPlan("web"), nil); shortName(err) != "NameTaken" {
		t.Errorf("the name is free: %v", err)
	}
	if out := other.plan(api.PlanIn{Name: "api"}); out.Address != "127.0.64.2" {
		t.Errorf("given %s", out.Address)
	}
	var list api.ListOut
	if err := other.call("List", nil, &list); err != nil || len(list.Leases) != 1 {
		t.Errorf("listed %+v, %v", list.Leases, err)
	}
	close(release)
	if err := <-planned; err != nil {
		t.Error(err)
	}
}
