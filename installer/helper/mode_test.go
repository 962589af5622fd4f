package helper

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// TestNetPlans is DESIGN.md section 8's table of net plans.
func TestNetPlans(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	deny, open := api.Policy{Egress: api.EgressDeny}, api.Policy{Egress: api.EgressOpen}
	tap := api.Tap{Address: "10.0.2.15/24", Gateway: "10.0.2.2", MTU: defaultMTU, Name: defaultTap}
	for name, c := range map[string]struct {
		in   api.PlanIn
		want api.NetPlan
	}{
		"none":           {api.PlanIn{Mode: api.ModeNone, Policy: deny}, api.NetPlan{Isolate: true, Resolver: api.ResolverNone}},
		"host, open":     {api.PlanIn{Mode: api.ModeHost, Policy: open}, api.NetPlan{Resolver: api.ResolverHost, Hosts: []api.HostEntry{{Name: "host.min.internal", Address: "127.0.0.1"}}}},
		"host, confined": {api.PlanIn{Mode: api.ModeHost, Policy: deny}, api.NetPlan{Resolver: api.ResolverNameservers, Nameservers: []string{"127.0.0.1"}}},
		"own_ip": {api.PlanIn{Mode: api.ModeOwnIP, Policy: open, Tap: &api.Tap{Address: "10.0.2.15/24", Gateway: "10.0.2.2"}},
			api.NetPlan{Isolate: true, Resolver: api.ResolverNameservers, Nameservers: []string{"10.0.2.2"}, Tap: &tap}},
	} {
		got := w.plan(c.in).Net
		if c.want.Nameservers == nil {
			c.want.Nameservers = []string{}
		}
		if c.want.Hosts == nil {
			c.want.Hosts = []api.HostEntry{}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestContradictions: fields that contradict the mode are an error that names both.
func TestContradictions(t *testing.T) {
	deny := api.Policy{Egress: api.EgressDeny}
	tap := api.Tap{Address: "10.0.2.15/24", Gateway: "10.0.2.2"}
	with := func(f func(*api.Tap)) api.PlanIn {
		x := tap
		f(&x)
		return api.PlanIn{Mode: api.ModeOwnIP, Policy: deny, Tap: &x}
	}
	for name, c := range map[string]struct {
		in          api.PlanIn
		field, says string
	}{
		"no tap":           {api.PlanIn{Mode: api.ModeOwnIP, Policy: deny}, "tap", "own_ip"},
		"host with tap":    {api.PlanIn{Mode: api.ModeHost, Policy: deny, Tap: &tap}, "tap", "mode host"},
		"none with tap":    {api.PlanIn{Mode: api.ModeNone, Policy: deny, Tap: &tap}, "tap", "mode none"},
		"none and open":    {api.PlanIn{Mode: api.ModeNone, Policy: api.Policy{Egress: api.EgressOpen}}, "policy.egress", "mode none"},
		"none, localhost":  {api.PlanIn{Mode: api.ModeNone, Policy: deny, Localhost: api.LocalhostOwn}, "localhost", "mode none"},
		"own, localhost":   {api.PlanIn{Mode: api.ModeOwnIP, Policy: deny, Tap: &tap, Localhost: api.LocalhostShared}, "localhost", "mode own_ip"},
		"no subnet":        {with(func(t *api.Tap) { t.Address = "10.0.2.15" }), "tap.address", "subnet"},
		"the subnet":       {with(func(t *api.Tap) { t.Address = "10.0.2.0/24" }), "tap.address", "10.0.2.0/24"},
		"loopback":         {with(func(t *api.Tap) { t.Address = "127.0.0.2/8" }), "tap.address", "127.0.0.2"},
		"gateway outside":  {with(func(t *api.Tap) { t.Gateway = "10.0.3.2" }), "tap.gateway", "10.0.2.0/24"},
		"gateway is it":    {with(func(t *api.Tap) { t.Gateway = "10.0.2.15" }), "tap.gateway", "10.0.2.15"},
		"two families":     {with(func(t *api.Tap) { t.Gateway = "fd00::1" }), "tap.gateway", "fd00::1"},
		"small mtu":        {with(func(t *api.Tap) { t.MTU = 575 }), "tap.mtu", "575"},
		"large mtu":        {with(func(t *api.Tap) { t.MTU = 65521 }), "tap.mtu", "65521"},
		"IPv6 mtu":         {with(func(t *api.Tap) { t.Address, t.Gateway, t.MTU = "fd00::2/64", "fd00::1", 1279 }), "tap.mtu", "1280"},
		"named lo":         {with(func(t *api.Tap) { t.Name = "lo" }), "tap.name", "lo"},
		"pattern as name":  {with(func(t *api.Tap) { t.Name = "tap%d" }), "tap.name", "tap%d"},
		"path as name":     {with(func(t *api.Tap) { t.Name = "../x" }), "tap.name", "../x"},
		"long name":        {with(func(t *api.Tap) { t.Name = strings.Repeat("a", 16) }), "tap.name", "15"},
		"long attempt":     {api.PlanIn{Mode: api.ModeHost, Policy: deny, Attempt: strings.Repeat("a", 65)}, "attempt", "64"},
		"attempt, control": {api.PlanIn{Mode: api.ModeHost, Policy: deny, Attempt: "a\nb"}, "attempt", "printable"},
	} {
		l := lease.Lease{}
		err := errors.Join(modeOf(c.in, &l), checkAttempt(c.in.Attempt))
		var e *api.InvalidArgument
		if !errors.As(err, &e) || e.Field != c.field || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: %v, want an invalid %s that says %s", name, err, c.field, c.says)
		}
	}
	var l lease.Lease
	if err := modeOf(api.PlanIn{Mode: api.ModeOwnIP, Policy: deny, Tap: &api.Tap{Address: "fd00::2/64", Gateway: "fd00::1"}}, &l); err != nil || l.Tap.Address.String() != "fd00::2/64" {
		t.Errorf("an IPv6 tap: %v, %+v", err, l.Tap)
	}
}

// TestAttempts: what was planned once is not planned a second time while it lives, per account.
func TestAttempts(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	first := w.plan(api.PlanIn{Attempt: "try 1"})
	again := api.PlanIn{Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny}, Attempt: "try 1"}
	second := r.dial(operatorUID, 11)
	err := second.call("Plan", again, nil)
	var taken *api.AttemptTaken
	if !errors.As(err, &taken) || taken.Lease != first.Lease || taken.Attempt != "try 1" {
		t.Errorf("planned twice: %v", err)
	}
	w.plan(api.PlanIn{Attempt: "try 2"})
	w.plan(api.PlanIn{})
	r.dial(otherUID, 12).plan(api.PlanIn{Attempt: "try 1"})
	if err := w.call("Abandon", api.AbandonIn{Lease: first.Lease}, nil); err != nil {
		t.Fatal(err)
	}
	if err := second.call("Plan", again, nil); err != nil {
		t.Errorf("behind the end of the first: %v", err)
	}
	var list api.ListOut
	err = second.call("List", nil, &list)
	if err != nil || !slices.ContainsFunc(list.Leases, func(l api.LeaseInfo) bool { return l.Attempt == "try 1" && l.Mode == api.ModeHost }) {
		t.Errorf("List: %v, %+v", err, list.Leases)
	}
}

// TestExplainIsolated: the policy is not the whole truth about a box with a network of its own.
func TestExplainIsolated(t *testing.T) {
	r := newRig(t)
	w := r.dial(operatorUID, 10)
	none, own := w.plan(api.PlanIn{Mode: api.ModeNone}), w.plan(ownIP)
	for _, c := range []struct {
		lease, to, says string
		allowed         bool
	}{
		{none.Lease, "192.0.2.7:443", "empty network namespace", false},
		{none.Lease, "127.0.0.1:3000", "own localhost", true},
		{own.Lease, "192.0.2.7:443", "switch", false},
	} {
		var out api.ExplainOut
		if err := w.call("Explain", api.ExplainIn{Box: c.lease, Destination: c.to}, &out); err != nil || out.Allowed != c.allowed || !strings.Contains(out.Reason, c.says) {
			t.Errorf("%s: %v %+v; want %q", c.to, err, out, c.says)
		}
	}
}
