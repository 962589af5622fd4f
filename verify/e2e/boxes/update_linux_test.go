package boxes

import (
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/verify/netlab"
)

// TestUpdate: a new policy of a live box counts from the next packet on.
func TestUpdate(t *testing.T) {
	h := newHost(t)
	o := h.outside()
	service := netlab.Echo(h, "tcp", "127.0.0.1:8099", 0)
	datagrams := netlab.Echo(h, "udp", "127.0.0.1:8099", 0)
	far := o.echo("tcp", atPort(o.far4(), 8005))
	b := h.box("live", denyPolicy())
	all := []place{{"tcp", service}, {"udp", datagrams}, {"tcp", far}, {"icmp", o.far4()}}
	for range 5 {
		b.expect(nil, all)
		b.update(rules("127.0.0.1 8099 tcp"))
		b.expect(all[:1], all[1:])
		b.update(rules("127.0.0.1 8099 udp", o.far4()+" icmp"))
		b.expect([]place{all[1], all[3]}, []place{all[0], all[2]})
		b.update(openPolicy())
		b.expect(all, nil)
		p := openPolicy()
		p.DenySubnets = []string{"127.0.0.0/8"}
		b.update(p)
		b.expect(all[2:], all[:2])
		b.update(denyPolicy())
	}
}

// TestUpdateIngress: a new policy counts for listeners too. Where a wildcard is bound is decided when it is: with
// a localhost of its own the box has to listen again to be reached by other hosts.
func TestUpdateIngress(t *testing.T) {
	h := newHost(t)
	o := h.outside()
	opened := denyPolicy()
	opened.Ingress, opened.IngressPorts = api.IngressPorts, []int{3500, 3501}
	none := denyPolicy()
	none.Ingress = api.IngressNone
	for _, c := range []struct {
		localhost api.Localhost
		older     bool // what listened before is reached at the host's address
	}{{api.LocalhostShared, true}, {"", false}} {
		in := planIn("ingress"+string(c.localhost), denyPolicy())
		in.Localhost = c.localhost
		b := h.boxOf(operatorUID, in)
		b.serve("tcp", atPort("0.0.0.0", 3500))
		far := func(want bool, port int) {
			t.Helper()
			h.outcome("another host", want, o.dial("tcp", atPort(o.near4(), port)), "tcp", o.near4())
		}
		far(false, 3500)
		b.update(opened)
		far(c.older, 3500)
		b.serve("tcp", atPort("0.0.0.0", 3501))
		far(true, 3501)
		b.update(denyPolicy())
		far(false, 3500)
		far(false, 3501)
		here := netlab.Dial{Network: "tcp", Address: atPort(o.near4(), 3501)}
		h.outcome("this host", true, here.Do(), "tcp", o.near4())
		b.update(none)
		h.outcome("this host", false, here.Do(), "tcp", o.near4())
		b.end()
	}
}

// TestUpdateLiveFlow: a flow that a new policy does not admit ends, and the box is told; one that it
// admits goes on.
func TestUpdateLiveFlow(t *testing.T) {
	h := newHost(t)
	o := h.outside()
	for name, service := range map[string]string{
		"another host": o.echo("tcp", atPort(o.far4(), 8099)), "another host, IPv6": o.echo("tcp", atPort(o.far6(), 8099)),
		"this host": netlab.Echo(h, "tcp", "127.0.0.1:8099", 0), "this host, IPv6": netlab.Echo(h, "tcp", "[::1]:8099", 0),
	} {
		t.Run(name, func(t *testing.T) {
			h := &host{t}
			all := []string{"10.99.0.0/16 8099 tcp", "fd99::/16 8099 tcp", "127.0.0.0/8 8099 tcp", "::1 8099 tcp"}
			b := h.box("flow", rules(all...))
			if got := ask[string](b.agent, "hold", service); got != "" {
				t.Fatalf("connect: %s", got)
			}
			b.update(rules(append(all, "192.0.2.0/24 any")...))
			if got := ask[string](b.agent, "talk", ""); got != "" {
				t.Errorf("a flow that both policies admit: %s", got)
			}
			b.update(denyPolicy())
			start := time.Now()
			got := ask[string](b.agent, "talk", "")
			if took := time.Since(start); got == "" || took > time.Second {
				t.Errorf("a flow that the policy does not admit: %q after %v; want its end at once", got, took)
			}
		})
	}
}

// TestEqualPoliciesShare: the elements of a policy are in the table once, however many boxes have it.
func TestEqualPoliciesShare(t *testing.T) {
	h := newHost(t)
	count := func() map[string]int {
		e, err := elements()
		h.must(err)
		return e
	}
	p := rules("192.0.2.0/24 443 tcp", "198.51.100.7 1000-2000 udp", "2001:db8::/64 443 tcp")
	p.DenySubnets = []string{"203.0.113.0/24"}
	h.box("", p)
	first := count()
	if first["allow4"] == 0 || first["allow6"] == 0 || first["deny4"] == 0 || first["policyof"] != 1 {
		t.Fatalf("elements of one box: %v", first)
	}
	var more []*box
	for range 4 {
		more = append(more, h.box("", p))
	}
	five := count()
	for _, set := range []string{"allow4", "allow6", "deny4"} {
		if five[set] != first[set] {
			t.Errorf("%s: %d elements for one box, %d for five of the same policy", set, first[set], five[set])
		}
	}
	if five["policyof"] != 5 {
		t.Errorf("%d leaves in the table, want 5", five["policyof"])
	}
	more[0].update(rules("192.0.2.0/24 444 tcp"))
	if now := count(); now["allow4"] <= five["allow4"] {
		t.Errorf("allow4: %d elements before another policy, %d after", five["allow4"], now["allow4"])
	}
}
