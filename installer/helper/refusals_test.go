package helper

import (
	"net/netip"
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

// TestRefusals: counted by destination, told to watchers, returned by Teardown; another box's address
// is of kind zone, a name is the box's own text made harmless.
func TestRefusals(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	web := r.box(w, api.PlanIn{Name: "web"}, 20)
	other := r.box(w, api.PlanIn{Name: "api"}, 21)
	number := func(id string) uint16 {
		r.h.mu.Lock()
		defer r.h.mu.Unlock()
		return r.h.boxes[id].Number
	}
	n := number(web.Lease)
	outside := netip.MustParseAddrPort("192.0.2.7:443")
	for range 3 {
		r.h.Refused(Refused{Number: n, Protocol: "tcp", To: outside})
	}
	r.h.Refused(Refused{Number: n, Protocol: "tcp", To: netip.AddrPortFrom(netip.MustParseAddr(other.Address), 3000), Inbound: true})
	r.h.Refused(Refused{Number: n, Protocol: "tcp", To: netip.AddrPortFrom(netip.MustParseAddr(web.Address), 3000)}) // its own
	r.h.RefusedName(n, "udp", netip.Addr{}, "exa\x1bmple.com")
	r.h.RefusedName(0, "tcp", netip.MustParseAddr(web.Address), "example.net")
	r.h.Refused(Refused{Number: 60000, Protocol: "tcp", To: outside}) // of a lease that is gone
	r.h.RefusedName(0, "tcp", netip.MustParseAddr("127.0.0.1"), "example.org")
	var out api.TeardownOut
	if err := w.call("Teardown", api.TeardownIn{Lease: web.Lease, Secret: web.Secret, Kill: true}, &out); err != nil {
		t.Fatal(err)
	}
	want := []api.Refusal{
		{Kind: api.RefusalKindAddress, Protocol: "tcp", Destination: "192.0.2.7", Port: 443, Count: 3},
		{Kind: api.RefusalKindZone, Protocol: "tcp", Destination: other.Address, Port: 3000, Name: "api", Count: 1},
		{Kind: api.RefusalKindAddress, Protocol: "tcp", Destination: web.Address, Port: 3000, Count: 1},
		{Kind: api.RefusalKindName, Protocol: "udp", Destination: `exa\x1bmple.com`, Name: `exa\x1bmple.com`, Count: 1},
		{Kind: api.RefusalKindName, Protocol: "tcp", Destination: "example.net", Name: "example.net", Count: 1},
	}
	if len(out.Refusals) != len(want) {
		t.Fatalf("%d refusals: %+v", len(out.Refusals), out.Refusals)
	}
	for i, got := range out.Refusals {
		got.Time, got.Lease, got.Box = "", "", ""
		if got != want[i] {
			t.Errorf("refusal %d: %+v, want %+v", i, got, want[i])
		}
	}
}

// TestRefusalsAreBounded: a box that tries everything costs no more memory than one that tries 64
// destinations.
func TestRefusalsAreBounded(t *testing.T) {
	var r refusals
	for i := range 1000 {
		r.add(api.Refusal{Destination: "192.0.2.1", Port: i})
	}
	all := r.list()
	if len(all) != maxDestinations || r.total != 1000 || all[len(all)-1].Port != 999 {
		t.Errorf("%d kept of %d, the last %d", len(all), r.total, all[len(all)-1].Port)
	}
}

// TestRefusalCounts: Status and Verify show what was refused, told and lost.
func TestRefusalCounts(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Refusals = overrun{} })
	w := r.dial(operatorUID, 10)
	var s api.StatusOut
	if err := w.call("Status", nil, &s); err != nil || s.Refused != 5 || s.RefusalsTold != 3 || s.RefusalsLost != 2 {
		t.Errorf("status: %+v, %v", s, err)
	}
	r.h.Answered([]api.Counter{{Kind: "address", Count: 7}})
	if err := w.call("Status", nil, &s); err != nil || len(s.Answers) != 1 || s.Answers[0].Count != 7 {
		t.Errorf("answers: %+v, %v", s.Answers, err)
	}
	var v api.VerifyOut
	if err := w.call("Verify", nil, &v); err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Checks {
		if c.Name == "refusals are told" {
			if c.State != api.CheckStateWarning || c.Detail != "5 packets refused since the table was filled, 3 told; 2 times they came faster than they were read" {
				t.Errorf("verify: %+v", c)
			}
			return
		}
	}
	t.Error("verify has no such check")
}

// overrun is a reader that lost events twice.
type overrun struct{}

func (overrun) Drain()       {}
func (overrun) Lost() uint64 { return 2 }
