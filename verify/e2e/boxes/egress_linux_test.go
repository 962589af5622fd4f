package boxes

import (
	"fmt"
	"os"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/verify/netlab"
)

// place is one service that a box may try.
type place struct {
	network, address string
}

// services are echo servers of the host and of the other host, and a sibling's.
type services struct {
	listed, other []place // of the host
	far, farOther []place // of the other host
	sibling       []place
	pings         []place
}

func (h *host) services(o *outside) services {
	h.Helper()
	var s services
	echo := func(list *[]place, addresses ...string) {
		for _, a := range addresses {
			for _, network := range []string{"tcp", "udp"} {
				*list = append(*list, place{network, netlab.Echo(h, network, a, 0)})
			}
		}
	}
	echo(&s.listed, "127.0.0.1:8099", "[::1]:8099")
	echo(&s.other, "127.0.0.1:8098", "[::1]:8098", atPort(o.near4(), 8097), atPort(o.near6(), 8097))
	for _, network := range []string{"tcp", "udp"} {
		for _, a := range []string{o.far4(), o.far6()} {
			s.far = append(s.far, place{network, o.echo(network, atPort(a, 8005))})
			s.farOther = append(s.farOther, place{network, o.echo(network, atPort(a, 9000))})
		}
	}
	sibling := h.box("sibling", denyPolicy())
	for _, a := range []string{"0.0.0.0:3101", "[::1]:3101"} {
		sibling.serve("tcp", a)
		sibling.serve("udp", a)
	}
	for _, network := range []string{"tcp", "udp"} {
		for _, a := range []string{"127.0.0.1", "127.0.64.1", sibling.plan.Address, "::1", o.near4()} {
			s.sibling = append(s.sibling, place{network, atPort(a, 3101)})
		}
	}
	for _, a := range []string{"127.0.0.1", "::1", o.far4(), o.far6(), o.near4(), sibling.plan.Address} {
		s.pings = append(s.pings, place{"icmp", a})
	}
	return s
}

func join(lists ...[]place) (all []place) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func (b *box) expect(ok, refused []place) {
	b.h.Helper()
	for _, p := range ok {
		b.reaches(p.network, p.address)
	}
	for _, p := range refused {
		b.refused(p.network, p.address)
	}
}

// ownServers listens in the box on wildcards, localhost and the own address, and returns how the box
// itself reaches them.
func (b *box) ownServers(o *outside) (own []place) {
	for _, network := range []string{"tcp", "udp"} {
		for port, l := range map[int][2]string{
			3200: {"0.0.0.0", "127.0.0.1"}, 3201: {"127.0.0.1", "127.0.0.1"}, 3202: {"::1", "::1"},
			3203: {b.plan.Address, b.plan.Address}, 3204: {"::", "::1"}, 3205: {"::", "127.0.0.1"},
			3206: {"0.0.0.0", b.plan.Address}, 3207: {"0.0.0.0", "127.0.0.2"}, 3208: {o.near6(), o.near6()},
		} {
			if network == "udp" && l[0] == "0.0.0.0" && l[1] != "127.0.0.1" {
				continue // the reply of a wildcard socket comes from 127.0.0.1, box or not
			}
			b.serve(network, atPort(l[0], port))
			own = append(own, place{network, atPort(l[1], port)})
		}
	}
	return own
}

// TestEgress is the matrix of what each kind of box reaches.
func TestEgress(t *testing.T) {
	h := newHost(t)
	o := h.outside()
	s := h.services(o)
	answerer := []place{{"tcp", "127.0.0.1:15353"}, {"tcp", "127.0.0.1:15354"}, {"tcp", "[::1]:15354"}}

	t.Run("host", func(t *testing.T) {
		for _, p := range join(s.listed, s.other, s.far, s.farOther) {
			if d := (netlab.Dial{Network: p.network, Address: p.address}.Do()); !d.OK() {
				t.Errorf("host, %s %s: %v", p.network, p.address, d)
			}
		}
		for _, p := range s.pings {
			if d, err := ping(p.address); err != nil || !d.OK() {
				t.Errorf("host, ping %s: %v, %v", p.address, d, err)
			}
		}
	})
	t.Run("deny", func(t *testing.T) {
		h := &host{t}
		b := h.box("deny", denyPolicy())
		own := b.ownServers(o)
		b.expect(own, join(s.listed, s.other, s.far, s.farOther, s.sibling, s.pings))
		b.connects(answerer)
	})
	t.Run("listed", func(t *testing.T) {
		h := &host{t}
		b := h.box("listed", rules("127.0.0.1 8099 tcp", "::1 8099 udp", o.far4()+" 8000-8010 tcp", o.far6()+"/128 8005 udp", o.far4()+" icmp"))
		yes := []place{{"tcp", "127.0.0.1:8099"}, {"udp", "[::1]:8099"}, {"tcp", atPort(o.far4(), 8005)}, {"udp", atPort(o.far6(), 8005)}, {"icmp", o.far4()}}
		b.expect(join(yes, b.ownServers(o)), without(join(s.listed, s.other, s.far, s.farOther, s.sibling, s.pings), yes))
		b.connects(answerer)
	})
	t.Run("open", func(t *testing.T) {
		h := &host{t}
		b := h.box("open", openPolicy())
		b.expect(join(s.listed, s.other, s.far, s.farOther, b.ownServers(o)), s.sibling)
		b.reaches("icmp", o.far4())
		b.reaches("icmp", o.far6())
		b.reaches("icmp", "127.0.0.1")
	})
	t.Run("deny_subnets beat open and rules", func(t *testing.T) {
		h := &host{t}
		p := openPolicy()
		p.DenySubnets = []string{o.far4() + "/32", "::1/128"}
		b := h.box("subnets", p)
		no := []place{{"tcp", atPort(o.far4(), 8005)}, {"udp", atPort(o.far4(), 8005)}, {"tcp", "[::1]:8099"}, {"udp", "[::1]:8098"},
			{"icmp", o.far4()}}
		b.expect([]place{{"tcp", atPort(o.far6(), 8005)}, {"tcp", "127.0.0.1:8098"}, {"icmp", o.far6()}}, no)
		p = rules(o.far4()+" any", "127.0.0.1 8098 tcp")
		p.DenySubnets = []string{"10.0.0.0/8"}
		b = h.box("subnets2", p)
		b.expect([]place{{"tcp", "127.0.0.1:8098"}}, []place{{"tcp", atPort(o.far4(), 8005)}, {"udp", atPort(o.far4(), 8005)}, {"icmp", o.far4()}})
	})
	t.Run("unknown leaf and boxes itself", func(t *testing.T) {
		h := &host{t}
		dir := boxesDir + "/e2e-unknown"
		h.must(os.Mkdir(dir, 0o755))
		t.Cleanup(func() { h.must(os.Remove(dir)) })
		for _, group := range []string{dir, boxesDir} {
			a := startAgent(t, netlab.Spawn{Leaf: netlab.NoLeaf, UID: operatorUID})
			h.must(writeFile(group+"/cgroup.procs", fmt.Sprint(a.PID())))
			b := &box{h: h, agent: a, plan: api.PlanOut{Lease: group}}
			b.serve("tcp", "127.0.0.1:3300")
			b.serve("udp", "127.0.0.1:3300")
			b.expect(nil, join(s.listed, s.other, s.far, s.farOther, s.sibling, s.pings, answerer,
				[]place{{"tcp", "127.0.0.1:3300"}, {"udp", "127.0.0.1:3300"}, {"udp", "127.0.0.1:15353"}}))
			a.Kill()
		}
	})
}

// connects requires the handshake only: the answerer does not echo.
func (b *box) connects(places []place) {
	b.h.Helper()
	for _, p := range places {
		if d := b.dial(p.network, p.address); !d.OK() && d.Step != "receive" {
			b.h.Errorf("%v, %s %s: %v; want a connection", b, p.network, p.address, d)
		}
	}
}

func without(all, some []place) (rest []place) {
next:
	for _, p := range all {
		for _, q := range some {
			if p == q {
				continue next
			}
		}
		rest = append(rest, p)
	}
	return rest
}
