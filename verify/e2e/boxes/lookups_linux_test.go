package boxes

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/gominimal/minhost/verify/netlab"
)

// TestLookups: what a confined box asks anybody on port 53 is answered by the box view.
func TestLookups(t *testing.T) {
	h := newHost(t)
	o := h.outside()
	// The host's resolver and one elsewhere: echo servers that no confined box may hear.
	resolver := "127.0.0.53:53"
	for _, network := range []string{"tcp", "udp"} {
		netlab.Echo(h, network, resolver, 0)
		o.echo(network, atPort(o.far4(), 53))
	}
	web := h.box("web", denyPolicy())
	deny := h.box("asker", denyPolicy())
	listed := h.box("listed-asker", rules("127.0.0.1 8099 tcp"))
	// Without any route the kernel gives up before a rule is asked.
	h.run("ip", "route", "add", "192.0.2.0/24", "via", o.far4())
	servers := []string{resolver, atPort(o.far4(), 53), "192.0.2.1:53", "127.0.0.1:53", "[::1]:53", atPort(o.far6(), 53), "127.0.0.1:15353"}
	for _, b := range []*box{deny, listed} {
		for _, network := range []string{"udp", "tcp"} {
			for _, server := range servers {
				b.answers(query{network, server, "web.min.internal", dns.TypeA}, "NOERROR", web.plan.Address)
				b.answers(query{network, server, "WEB.min.internal", dns.TypeAAAA}, "NOERROR", "")
				b.answers(query{network, server, "nobody.min.internal", dns.TypeA}, "NXDOMAIN", "")
				if server != "127.0.0.1:15353" { // the host's view refuses what is not its zone
					b.answers(query{network, server, "example.com", dns.TypeA}, "NXDOMAIN", "")
					b.answers(query{network, server, "host.min.internal", dns.TypeA}, "NOERROR", "127.0.64.254")
				}
			}
		}
	}
	// The port that the lookups went to is the host's all the same for the host.
	for _, network := range []string{"tcp", "udp"} {
		if d := (netlab.Dial{Network: network, Address: resolver}.Do()); !d.OK() {
			t.Errorf("host, %s %s: %v", network, resolver, d)
		}
	}
	// A rule that names a server with port 53 reaches that server.
	named := h.box("named", rules(o.far4()+" 53 udp", o.far4()+" 53 tcp"))
	named.reaches("udp", atPort(o.far4(), 53))
	named.reaches("tcp", atPort(o.far4(), 53))
	named.answers(query{"udp", resolver, "web.min.internal", dns.TypeA}, "NOERROR", web.plan.Address)
	// An open box asks whom it likes.
	open := h.box("open-asker", openPolicy())
	open.reaches("udp", resolver)
	open.reaches("tcp", atPort(o.far4(), 53))
	// A box's own server on port 53 of its own address is its own. Root binds it.
	root := h.boxOf(0, planIn("own53", denyPolicy()))
	root.serve("udp", atPort(root.plan.Address, 53))
	root.reaches("udp", atPort(root.plan.Address, 53))
}

// answers asks from the box and requires rcode and address at once; negatives have a SOA.
func (b *box) answers(q query, rcode, address string) {
	b.h.Helper()
	var a answer
	for range 3 { // the machine may have been busy
		if a = ask[answer](b.agent, "lookup", q); a.Err == "" && a.Took < 50*time.Millisecond {
			break
		}
	}
	if a.Err != "" || a.Rcode != rcode || a.Address != address || a.SOA != (address == "") || a.Took > 50*time.Millisecond {
		b.h.Errorf("%v, %s %s at %s: %+v; want %s %q at once", b, q.Network, q.Name, q.Server, a, rcode, address)
	}
}
