package helper

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/gominimal/minhost/installer/api"
)

// patchy is a range of which something is missing until it is mended.
type patchy struct {
	Range
	missing atomic.Pointer[error]
}

func (p *patchy) Ready() error {
	if missing := p.missing.Load(); missing != nil {
		return *missing
	}
	return nil
}

func (p *patchy) Free(netip.Addr) error { return nil }

// TestRangeUnavailable: no address is given away while the range has a hole, wherever that is.
func TestRangeUnavailable(t *testing.T) {
	missing := errors.New("1 of 254 addresses of the range are not on lo0")
	var hosts patchy
	hosts.missing.Store(&missing)
	r := newRig(t, func(c *Config) { c.Range = &hosts })
	w := r.dial(operatorUID, 100)
	in := api.PlanIn{Name: "web", Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressOpen}}
	var hole *api.RangeUnavailable
	if err := w.call("Plan", in, nil); !errors.As(err, &hole) || hole.Message != missing.Error() || hole.Next == "" {
		t.Errorf("%v", err)
	}
	w.plan(api.PlanIn{}) // without a name it needs no address
	hosts.missing.Store(nil)
	if out := w.plan(in); out.Address == "" {
		t.Errorf("%+v", out)
	}
}

// TestOneProcess: where a box is its one process, a second one is refused, and no table is no fault.
func TestOneProcess(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.OneProcess, c.Table, c.Flows, c.Refusals, c.Unenforceable = true, nil, nil, nil, "no verdicts here"
	})
	r.w.table = nil
	w := r.dial(operatorUID, 100)
	out := r.box(w, api.PlanIn{Name: "web", Policy: api.Policy{Egress: api.EgressOpen}}, 200)
	if out.Enforcement != api.EnforcementNone || out.EnforcementCause != "no verdicts here" {
		t.Errorf("%+v", out)
	}
	r.w.spawn(201, operatorUID)
	var no *api.NotSupported
	if err := w.call("Join", api.JoinIn{Lease: out.Lease, Secret: out.Secret, PID: 201, Kind: api.JoinKindExec}, nil); !errors.As(err, &no) {
		t.Errorf("join: %v", err)
	}
	var checks api.VerifyOut
	if err := w.call("Verify", api.VerifyIn{}, &checks); err != nil {
		t.Fatal(err)
	}
	for _, c := range checks.Checks {
		if c.State == api.CheckStateFailed {
			t.Errorf("%+v", c)
		}
	}
	var unenforceable *api.Unenforceable
	if err := w.call("Plan", api.PlanIn{Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny}}, nil); !errors.As(err, &unenforceable) {
		t.Errorf("a box that must be confined: %v", err)
	}
}
