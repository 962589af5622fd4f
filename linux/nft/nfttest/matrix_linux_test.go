package nfttest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/cut"
	"github.com/gominimal/minhost/verify/netlab"
)

// TestMatrix: for generated policies every way to every destination does what lease.Policy.Decide says,
// with the errno that belongs to it: in a new box, for flows that were there before an update, and for
// new ones behind it. Under the belt, as on a host.
func TestMatrix(t *testing.T) {
	l := newLab(t)
	l.belt()
	l.allowPing()
	o := newOutside(l)
	m := &matrix{lab: l, o: o, cutter: l.cutter(), seed: uint64(time.Now().UnixNano())}
	for _, network := range []string{"tcp", "udp"} {
		for _, port := range []string{"8000", "8001"} {
			o.echo(network, ":"+port)
			netlab.Echo(t, network, "127.0.0.1:"+port, 0)
			netlab.Echo(t, network, "[::1]:"+port, 0)
		}
	}
	for _, a := range []string{o.far(), o.far6()[1 : len(o.far6())-1], "127.0.0.1", "::1"} {
		for _, port := range []uint16{8000, 8001} {
			m.to = append(m.to, netip.AddrPortFrom(netip.MustParseAddr(a), port))
		}
	}
	start := time.Now()
	fixed := []lease.Policy{deny(), openEgress(), allow(t, "0.0.0.0/0 any", "::/0 any"),
		allow(t, o.far()+" 8000 tcp", m.to[2].Addr().String()+" 8001 udp", "127.0.0.1 8000 udp", "::1 8001 tcp", o.far()+" icmp")}
	r := rand.New(rand.NewPCG(m.seed, 1))
	for i := range 14 {
		p := m.random(r)
		if i < len(fixed) {
			p = fixed[i]
		}
		m.policy(p)
		if t.Failed() {
			t.Fatalf("seed %d", m.seed)
		}
	}
	t.Logf("%d cells, %d allowed, in %v", m.cells, m.allowed, time.Since(start))
	if m.cells < 2000 || m.allowed < 300 || m.cells-m.allowed < 300 {
		t.Errorf("%d cells, %d allowed: that proves little", m.cells, m.allowed)
	}
}

type matrix struct {
	*lab
	o              *outside
	cutter         *cut.Cutter
	to             []netip.AddrPort
	seed           uint64
	cells, allowed int
}

// random draws a policy whose rules have to do with the destinations.
func (m *matrix) random(r *rand.Rand) lease.Policy {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	prefix := func() string {
		return pick(m.o.far(), m.o.far()+"/30", "0.0.0.0/0", m.to[2].Addr().String(), m.to[2].Addr().String()+"/64", "::/0", "127.0.0.1", "::1", "127.0.0.0/8", "192.0.2.0/24")
	}
	p := lease.Policy{Egress: lease.Rules}
	if r.IntN(5) == 0 {
		p = openEgress()
	}
	for range 1 + r.IntN(5) {
		protocol := lease.Protocol(pick("tcp", "tcp", "udp", "udp", "icmp", "any"))
		ports := ""
		if protocol == lease.TCP || protocol == lease.UDP {
			ports = pick("8000", "8001", "8000-8001", "", "1-7999", "8001-65535")
		}
		rule, err := lease.ParseRule(prefix(), ports, protocol)
		m.must(err)
		if p.Egress == lease.Rules {
			p.Rules = append(p.Rules, rule)
		}
		if r.IntN(4) == 0 {
			d, err := lease.ParsePrefix(prefix())
			m.must(err)
			p.DenySubnets = append(p.DenySubnets, d)
		}
	}
	return p
}

// policy fills the cells of one policy.
func (m *matrix) policy(p lease.Policy) {
	m.Helper()
	var flows, fresh []try
	for _, to := range m.to {
		for _, way := range []string{"connect", "poll", "fastopen", "uring", "send", "sendmsg", "connected", "usend"} {
			fresh = append(fresh, try{Way: way, To: to})
		}
		flows = append(flows, try{Way: "hold", To: to}, try{Way: "hold", To: to, UDP: true})
	}
	fresh = append(fresh, try{Way: "ping", To: m.to[0]}, try{Way: "ping", To: m.to[2]})
	b := m.box(p)
	m.compare(b, "new", m.agent(b), fresh)

	live := m.box(openEgress())
	agent := m.agent(live)
	for i, word := range m.ask(agent, flows) {
		if word != "ok" {
			m.Fatalf("an open box, %+v: %s", flows[i], word)
		}
		flows[i].Way = "talk"
	}
	m.tighten(m.cutter, live, p)
	m.compare(live, "established", agent, flows)
	m.compare(live, "after update", agent, fresh)
	for _, b := range []*box{b, live} {
		m.must(m.table.Delete(m.ctx(), b.Verdict))
	}
}

func (m *matrix) agent(b *box) *netlab.Proc {
	m.Helper()
	p := netlab.Start(m, netlab.Spawn{Leaf: b.FD()}, "tries")
	p.Line()
	return p
}

// ask has the tries made.
func (m *matrix) ask(p *netlab.Proc, all []try) (words []string) {
	m.Helper()
	line, err := json.Marshal(all)
	m.must(err)
	p.Say(string(line))
	m.must(json.Unmarshal([]byte(p.Line()), &words))
	return words
}

// expect says what each try must come to; want is "ok" or how it is refused.
func (m *matrix) expect(b *box, tries []try) (want, why []string) {
	for i, x := range tries {
		protocol, to := lease.TCP, x.To
		switch x.Way {
		case "send", "sendmsg", "connected", "usend":
			protocol = lease.UDP
		case "ping":
			protocol, to = lease.ICMP, netip.AddrPortFrom(to.Addr(), 0)
		}
		if x.UDP {
			protocol = lease.UDP
		}
		d := b.Policy.Decide(to, protocol, lease.Place{Own: b.Address, Local: isLocal})
		word := "ok"
		if !d.Allowed {
			word = refusal(x, to.Addr().IsLoopback(), denied(b.Policy, to.Addr()))
		}
		tries[i].Brief = word == "silence"
		want, why = append(want, word), append(why, d.Reason)
	}
	return want, why
}

// compare has the tries made and looks at each.
func (m *matrix) compare(b *box, state string, p *netlab.Proc, tries []try) {
	m.Helper()
	want, why := m.expect(b, tries)
	for i, word := range m.ask(p, tries) {
		m.cells++
		if want[i] == "ok" {
			m.allowed++
		}
		if word != want[i] {
			m.Errorf("%s box of %s: %s %v: %s, want %s (%s)", state, policyText(b.Policy), tries[i].Way, tries[i].To, word, want[i], why[i])
		}
	}
}

func denied(p lease.Policy, a netip.Addr) bool {
	for _, d := range p.DenySubnets {
		if d.Contains(a) {
			return true
		}
	}
	return false
}

// refusal is how a way is refused: at once, wherever the sender can be told. A packet to a local address
// is judged at the receiver unless its address is denied, and an ICMP error comes back, which reaches
// connected sockets only.
func refusal(x try, local, denied bool) string {
	atReceiver := local && !denied
	icmp := "EHOSTUNREACH"
	if x.To.Addr().Is6() {
		icmp = "EACCES"
	}
	switch x.Way {
	case "connect", "poll", "fastopen", "uring":
		return "ECONNREFUSED"
	case "talk":
		switch {
		case !x.UDP:
			return "ECONNABORTED"
		case atReceiver:
			return icmp
		case local:
			return "EPERM"
		}
		return "EDESTADDRREQ"
	case "connected":
		if atReceiver {
			return icmp
		}
	case "send", "sendmsg", "usend":
		if atReceiver {
			return "silence"
		}
	case "ping":
		if x.To.Addr().Is6() {
			return "silence" // Linux does not tell a ping socket that its IPv6 packet was not sent
		}
	}
	return "EPERM"
}

func policyText(p lease.Policy) string {
	s := string(p.Egress)
	for _, r := range p.Rules {
		s += " " + r.String()
	}
	for _, d := range p.DenySubnets {
		s += fmt.Sprintf(" -%s", d)
	}
	return s
}
