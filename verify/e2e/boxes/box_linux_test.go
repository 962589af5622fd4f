package boxes

import (
	"fmt"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/verify/netlab"
)

func denyPolicy() api.Policy { return api.Policy{Egress: api.EgressDeny} }
func openPolicy() api.Policy { return api.Policy{Egress: api.EgressOpen} }

// rules makes a policy from words like "127.0.0.1 8000-8010 tcp"; "::1 any" has no ports.
func rules(texts ...string) api.Policy {
	p := api.Policy{Egress: api.EgressRules}
	for _, text := range texts {
		f := strings.Fields(text)
		if len(f) == 2 {
			f = []string{f[0], "", f[1]}
		}
		p.Rules = append(p.Rules, api.Rule{To: f[0], Ports: f[1], Protocol: api.Protocol(f[2])})
	}
	return p
}

// box is an attached box of the operator's with an agent in it.
type box struct {
	*agent
	h    *host
	c    *client.Client
	plan api.PlanOut
}

// box plans as the operator, starts an agent held, and attaches it.
func (h *host) box(name string, p api.Policy) *box {
	h.Helper()
	return h.boxOf(operatorUID, api.PlanIn{Name: name, Mode: api.ModeHost, Policy: p})
}

func (h *host) boxOf(uid uint32, in api.PlanIn) *box {
	h.Helper()
	c := h.dial(uid)
	plan, err := c.Plan(h.ctx(), in)
	h.must(err)
	b := &box{h: h, c: c, plan: plan, agent: startAgent(h, netlab.Spawn{Leaf: netlab.NoLeaf, UID: uid})}
	h.must(c.Attach(h.ctx(), api.AttachIn{Lease: plan.Lease, PID: b.PID()}, nil))
	// After its agent, which cleanup ends after this: the box is ended alive.
	h.Cleanup(func() { b.end() })
	return b
}

// end tears the box down with what lives in it. Ended boxes give the same answer.
func (b *box) end() api.TeardownOut {
	b.h.Helper()
	c, err := b.h.tryDial(operatorUID)
	b.h.must(err)
	defer c.Close()
	out, err := c.Teardown(b.h.ctx(), api.TeardownIn{Lease: b.plan.Lease, Secret: b.plan.Secret, Kill: true})
	if err != nil && api.ErrorName(err) != "dev.minimal.Host.NoSuchLease" {
		b.h.Errorf("teardown of %s: %v", b.plan.Lease, err)
	}
	return out
}

func (b *box) update(p api.Policy) {
	b.h.Helper()
	c, err := b.h.tryDial(operatorUID)
	b.h.must(err)
	defer c.Close()
	b.h.must(c.Update(b.h.ctx(), api.UpdateIn{Lease: b.plan.Lease, Secret: b.plan.Secret, Policy: new(p)}))
}

func (b *box) String() string {
	if b.plan.Name != "" {
		return "box " + b.plan.Name
	}
	return "box " + b.plan.Lease
}

// reaches fails the test when the octet does not come back.
func (b *box) reaches(network, address string) {
	b.h.Helper()
	try := b.dialPatiently
	if network == "icmp" {
		try = b.try
	}
	if o := try(network, address); !o.OK() {
		b.h.Errorf("%v, %s %s: %v; want ok", b, network, address, o)
	}
}

// refused fails the test when the box gets through, or when it is not told within 50 ms. A slow
// refusal is tried again: the machine may have been busy.
func (b *box) refused(network, address string) {
	b.h.Helper()
	var o netlab.Outcome
	for range 3 {
		o = b.try(network, address)
		if o.OK() || o.Took < 50*time.Millisecond {
			break
		}
	}
	if o.OK() || o.Took >= 50*time.Millisecond {
		b.h.Errorf("%v, %s %s: %v; want a refusal at once", b, network, address, o)
	}
}

func (b *box) try(network, address string) netlab.Outcome {
	b.h.Helper()
	if network == "icmp" {
		return ask[netlab.Outcome](b.agent, "ping", address)
	}
	return b.dial(network, address)
}

// at joins an address and the port of another.
func at(address, other string) string {
	if strings.Contains(address, ":") {
		address = "[" + address + "]"
	}
	return address + other[strings.LastIndex(other, ":"):]
}

func portOf(address string) string { return address[strings.LastIndex(address, ":")+1:] }

func atPort(address string, port int) string { return at(address, fmt.Sprintf(":%d", port)) }

func planIn(name string, p api.Policy) api.PlanIn {
	return api.PlanIn{Name: name, Mode: api.ModeHost, Policy: p}
}
