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
// that the policy replaces, or nil. Boxes with the same policy share its elements, so what each takes alone comes
// to as many or more: only where that is too much is it worked out who shares.
func (h *Helper) afford(uid uint32, p lease.Policy, self *box) error {
	if h.cfg.Table == nil {
		return nil
	}
	want := []lease.Verdict{worst(lease.Lease{Number: 1, Policy: p})}
	all := h.cfg.Table.Elements(want)
	own := all
	for _, b := range h.boxes {
		if b == self {
			continue
		}
		n := h.needs(b)
		all += n
		if b.UID == uid {
			own += n
		}
	}
	if all > maxAllElements {
		all = h.shared(want, func(b *box) bool { return b != self })
	}
	if all > maxAllElements {
		return &api.PolicyTooLarge{Elements: all, Limit: maxAllElements,
			Message: fmt.Sprintf("the policies of all boxes would need %d set elements; the table takes %d", all, maxAllElements),
			Next:    "use fewer or larger subnets"}
	}
	if uid == 0 {
		return nil
	}
	if own > maxElements {
		own = h.shared(want, func(b *box) bool { return b != self && b.UID == uid })
	}
	if own > maxElements {
		return &api.PolicyTooLarge{Elements: own, Limit: maxElements,
			Message: fmt.Sprintf("the policies of uid %d would need %d set elements; one account may have %d", uid, own, maxElements),
			Next:    "use fewer or larger subnets"}
	}
	return nil
}

// needs is how many elements a box's policy takes by itself, worked out once a policy. h.mu is held.
func (h *Helper) needs(b *box) int {
	if b.needs == nil {
		n := h.cfg.Table.Elements([]lease.Verdict{worst(b.Lease)})
		b.needs = &n
	}
	return *b.needs
}

// shared is how many elements these verdicts and those of some boxes take together. h.mu is held.
func (h *Helper) shared(want []lease.Verdict, some func(*box) bool) int {
	for _, b := range h.boxes {
		if some(b) {
			want = append(want, worst(b.Lease))
		}
	}
	return h.cfg.Table.Elements(want)
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
