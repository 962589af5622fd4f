package helper

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
)

// zone is what the name of a box ends with (resolverd/zonefile.Origin, without the last dot).
const zone = ".min.internal"

// policyFrom turns the wire form into a canonical policy, whose seconds are counted from now. Errors name the
// field.
func policyFrom(in api.Policy, now time.Time) (lease.Policy, error) {
	p := lease.Policy{Egress: lease.Egress(in.Egress), Ingress: lease.Ingress(in.Ingress)}
	for i, r := range in.Rules {
		rule, err := lease.ParseRule(r.To, r.Ports, lease.Protocol(r.Protocol))
		if err == nil {
			rule.Until, err = lease.Term(r.Seconds, r.Until, now)
		}
		if err != nil {
			return lease.Policy{}, invalid(fmt.Sprintf("policy.rules[%d]", i), err)
		}
		p.Rules = append(p.Rules, rule)
	}
	for i, s := range in.DenySubnets {
		d, err := lease.ParsePrefix(s)
		if err != nil {
			return lease.Policy{}, invalid(fmt.Sprintf("policy.deny_subnets[%d]", i), err)
		}
		p.DenySubnets = append(p.DenySubnets, d)
	}
	for i, n := range in.IngressPorts {
		if n < 1 || n > 65535 {
			return lease.Policy{}, invalid(fmt.Sprintf("policy.ingress_ports[%d]", i), fmt.Errorf("%d is not a number from 1 to 65535", n))
		}
		p.IngressPorts = append(p.IngressPorts, uint16(n))
	}
	p.IngressBoxes = in.IngressBoxes
	p, err := p.Canonical()
	if err != nil {
		e := err.(*lease.PolicyError)
		return lease.Policy{}, &api.InvalidArgument{Field: e.Field, Message: e.Error()}
	}
	return p, nil
}

// policyTo is the canonical wire form.
func policyTo(p lease.Policy) *api.Policy {
	out := &api.Policy{Egress: api.Egress(p.Egress), Ingress: api.Ingress(p.Ingress)}
	for _, r := range p.Rules {
		out.Rules = append(out.Rules, api.Rule{To: r.Target(), Ports: r.Ports(), Protocol: api.Protocol(r.Protocol), Until: r.Ends()})
	}
	for _, d := range p.DenySubnets {
		out.DenySubnets = append(out.DenySubnets, d.String())
	}
	for _, n := range p.IngressPorts {
		out.IngressPorts = append(out.IngressPorts, int(n))
	}
	out.IngressBoxes = p.IngressBoxes
	return out
}

// netPlan is DESIGN.md section 8's table for mode host.
func netPlan(l lease.Lease) api.NetPlan {
	if l.Policy.Confined() {
		return api.NetPlan{Resolver: api.ResolverNameservers, Nameservers: []string{"127.0.0.1"}}
	}
	host := "127.0.0.1"
	if l.OwnLocalhost {
		host = lease.HostAddress().String() // 127.0.0.1 is the box's own first
	}
	return api.NetPlan{Resolver: api.ResolverHost, Hosts: []api.HostEntry{{Name: "host" + zone, Address: host}}}
}

// afford checks the limits of a policy beside those that are live. h.mu is held. self is the box
// that the policy replaces, or nil.
func (h *Helper) afford(uid uint32, p lease.Policy, self *box) error {
	if h.cfg.Table == nil {
		return nil
	}
	want := []lease.Verdict{worst(lease.Lease{Number: 1, Policy: p})}
	own := []lease.Verdict{want[0]}
	for _, b := range h.boxes {
		if b == self {
			continue
		}
		v := worst(b.Lease)
		want = append(want, v)
		if b.UID == uid {
			own = append(own, v)
		}
	}
	if n := h.cfg.Table.Elements(want); n > maxAllElements {
		return &api.PolicyTooLarge{Elements: int(n), Limit: maxAllElements,
			Message: fmt.Sprintf("the policies of all boxes would need %d set elements; the table takes %d", n, maxAllElements),
			Next:    "use fewer or larger subnets"}
	}
	if uid == 0 {
		return nil
	}
	if n := h.cfg.Table.Elements(own); n > maxElements {
		return &api.PolicyTooLarge{Elements: int(n), Limit: maxElements,
			Message: fmt.Sprintf("the policies of uid %d would need %d set elements; one account may have %d", uid, n, maxElements),
			Next:    "use fewer or larger subnets"}
	}
	return nil
}

// worst is the verdict of a lease when every box that it names lives.
func worst(l lease.Lease) lease.Verdict {
	a := lease.HostAddress()
	return l.Verdict(uint64(l.Number)+1, func(string) (uint16, netip.Addr, bool) {
		a = a.Next().Next() // each its own, and never neighbours that one element could hold
		return 1, a, true
	})
}

// addressOf parses a destination for Explain: "192.0.2.7:443", "192.0.2.7", "[2001:db8::1]:443".
func addressOf(s string) (netip.AddrPort, error) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is neither an address nor address:port", api.Text(s))
	}
	return netip.AddrPortFrom(a.Unmap(), 0), nil
}
