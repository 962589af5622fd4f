package nfttest

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/verify/netlab"
)

var everywhere = []struct{ network, address string }{
	{"tcp", "127.0.0.1:0"}, {"udp", "127.0.0.1:0"}, {"tcp", "[::1]:0"}, {"udp", "[::1]:0"},
}

// A deny-all box, an unknown leaf and a process directly in boxes reach no service of the host; the
// host is untouched, and an open box reaches them all.
func TestDeny(t *testing.T) {
	l := newLab(t)
	closed, unknown, free := l.box(deny()), l.leaf(deny()), l.box(openEgress())
	boxes, err := l.tree.BoxesFD()
	l.must(err)
	for _, e := range everywhere {
		at := netlab.Echo(t, e.network, e.address, 0)
		l.refused(closed, e.network, at)
		l.refused(unknown, e.network, at)
		d := netlab.Dial{Network: e.network, Address: at}
		if o := d.From(t, boxes); o.OK() {
			t.Errorf("directly in boxes, %s %s: %v", e.network, at, o)
		}
		if o := d.From(t, netlab.NoLeaf); !o.OK() {
			t.Errorf("host, %s %s: %v", e.network, at, o)
		}
		l.reaches(free, e.network, at)
		if e.network == "tcp" {
			if o := l.dial(closed, e.network, at); o.Errno != unix.ECONNREFUSED || o.Step != "connect" {
				t.Errorf("%s: %v", at, o)
			}
		}
	}
}

// Rules let exactly what they name through: address, port range and protocol, both families.
func TestRules(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	for _, network := range []string{"tcp", "udp"} {
		for _, port := range []string{"8000", "8005", "8010", "8011", "9000"} {
			o.echo(network, ":"+port)
		}
	}
	listed := l.box(allow(t,
		o.far()+" 8000-8005 tcp", o.far()+" 8004-8010 tcp", // overlap
		"fd99::/16 8005 udp", "fd99::/16 9000 tcp"))
	for _, c := range []struct {
		network, address string
		ok               bool
	}{
		{"tcp", o.far() + ":8000", true}, {"tcp", o.far() + ":8005", true}, {"tcp", o.far() + ":8010", true},
		{"tcp", o.far() + ":8011", false}, {"udp", o.far() + ":8005", false}, {"tcp", o.far6() + ":8005", false},
		{"udp", o.far6() + ":8005", true}, {"udp", o.far6() + ":9000", false}, {"tcp", o.far6() + ":9000", true},
	} {
		if c.ok {
			l.reaches(listed, c.network, c.address)
		} else {
			l.refused(listed, c.network, c.address)
		}
	}
	any := l.box(allow(t, "0.0.0.0/0 any"))
	l.reaches(any, "tcp", o.far()+":8011")
	l.reaches(any, "udp", o.far()+":9000")
	l.refused(any, "tcp", o.far6()+":8005")
}

// Deny subnets beat an open box and a rule.
func TestDenySubnets(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	o.echo("tcp", ":8000")
	o.echo("udp", ":8000")
	for _, p := range []lease.Policy{openEgress(), allow(t, "0.0.0.0/0 any", "::/0 any")} {
		p.DenySubnets = []netip.Prefix{netip.MustParsePrefix(o.far() + "/32"), netip.MustParsePrefix("fd99::/16")}
		b := l.box(p)
		for _, network := range []string{"tcp", "udp"} {
			l.refused(b, network, o.far()+":8000")
			l.refused(b, network, o.far6()+":8000")
		}
	}
	l.reaches(l.box(openEgress()), "tcp", o.far()+":8000")
}

// A box reaches its own listeners on every local address, and nobody else's.
func TestSelf(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	a, b, free := l.box(deny()), l.box(deny()), l.box(openEgress())
	for _, network := range []string{"tcp", "udp"} {
		at4, _ := netlab.EchoIn(t, netlab.Spawn{Leaf: a.FD()}, network, "0.0.0.0:0", 0)
		at6, _ := netlab.EchoIn(t, netlab.Spawn{Leaf: a.FD()}, network, "[::1]:0", 0)
		own, _ := netlab.EchoIn(t, netlab.Spawn{Leaf: a.FD()}, network, a.Address.String()+":0", 0)
		to := []string{"127.0.0.1:" + port(at4), at6, own}
		if network == "tcp" { // a UDP server on the wildcard answers from an address of its choice
			to = append(to, a.Address.String()+":"+port(at4), o.near()+":"+port(at4))
		}
		for _, to := range to {
			l.reaches(a, network, to)
			l.refused(b, network, to)
			l.refused(free, network, to)
			if out := (netlab.Dial{Network: network, Address: to}).Do(); !out.OK() {
				t.Errorf("host, %s %s: %v", network, to, out)
			}
		}
	}
}

// A rule for a port of the host is no rule for a box that sits on it.
func TestSquatter(t *testing.T) {
	l := newLab(t)
	at := netlab.Echo(t, "tcp", "127.0.0.1:0", 0)
	listed, squatter := l.box(allow(t, "127.0.0.1 any")), l.box(deny())
	l.reaches(listed, "tcp", at)
	for _, network := range []string{"tcp", "udp"} {
		squat, _ := netlab.EchoIn(t, netlab.Spawn{Leaf: squatter.FD()}, network, "127.0.0.1:0", 0)
		l.refused(listed, network, squat)
	}
}

// Two boxes that both declared it reach each other.
func TestBothDeclared(t *testing.T) {
	l := newLab(t)
	p := deny()
	p.Ingress, p.IngressPorts = lease.FromPorts, []uint16{3000}
	server := l.box(p)
	addr := server.Address.String()
	for _, network := range []string{"tcp", "udp"} {
		for _, port := range []string{"3000", "3001"} {
			netlab.EchoIn(t, netlab.Spawn{Leaf: server.FD()}, network, addr+":"+port, 0)
		}
		may, other := l.box(allow(t, addr+" any")), l.box(deny())
		l.reaches(may, network, addr+":3000")
		l.refused(may, network, addr+":3001")
		l.refused(other, network, addr+":3000")
	}
}

// A flow whose conntrack entry is lost goes on, also where connection tracking does not pick up flows
// in the middle and calls their packets invalid.
func TestLostEntry(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	o.echo("tcp", ":8000")
	b := l.box(allow(t, o.far()+" 8000 tcp"))
	const loose = "/proc/sys/net/netfilter/nf_conntrack_tcp_loose"
	defer os.WriteFile(loose, []byte("1"), 0o644)
	for _, v := range []string{"1", "0"} {
		l.must(os.WriteFile(loose, []byte(v), 0o644))
		p := netlab.Start(t, netlab.Spawn{Leaf: b.FD()}, "talk", o.far()+":8000")
		for range 5 {
			if line := p.Line(); line != "ok" {
				t.Errorf("loose %s: %s", v, line)
			}
			l.run("conntrack", "-F")
		}
	}
	if p := netlab.InLeaf(t, b.FD(), "netlab-dial", `{"Network":"tcp","Address":"`+o.far()+`:8001"}`); strings.Contains(p, `"Errno":0`) {
		t.Error(p)
	}
}

// Somebody else's destination NAT before us (Docker's): rules are about where the box sends, deny
// subnets about that and about where it ends up.
func TestForeignNAT(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	o.echo("tcp", ":8000")
	virtual := fmt.Sprintf("10.99.%d.9", o.n)
	l.run("nft", "add table ip docker; add chain ip docker o { type nat hook output priority -100; }; "+
		"add rule ip docker o ip daddr { "+virtual+", "+o.near()+" } tcp dport 80 dnat to "+o.far()+":8000")
	defer l.run("nft", "delete table ip docker")
	l.reaches(l.box(allow(t, virtual+" 80 tcp")), "tcp", virtual+":80")
	l.reaches(l.box(openEgress()), "tcp", o.near()+":80")
	l.refused(l.box(allow(t, o.far()+" 8000 tcp")), "tcp", virtual+":80")
	l.refused(l.box(deny()), "tcp", o.near()+":80") // a local address no more
	for _, denied := range []string{virtual, o.far()} {
		p := openEgress()
		p.DenySubnets = []netip.Prefix{netip.MustParsePrefix(denied + "/32")}
		l.refused(l.box(p), "tcp", virtual+":80")
	}
}

// Multicast and broadcast reach everybody's sockets: no rule opens them.
func TestManyReceivers(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	l.run("ip", "route", "add", "default", "via", o.far())
	listed, free := l.box(allow(t, "0.0.0.0/0 any", "::/0 any")), l.box(openEgress())
	for _, to := range []string{"224.0.0.251:5353", "255.255.255.255:9", fmt.Sprintf("10.99.%d.255:9", o.n), "239.1.1.1:9"} {
		if got := netlab.InLeaf(t, listed.FD(), "sendfrom", "0", to); got != "EPERM\n" {
			t.Errorf("%s: %s", to, got)
		}
		if got := netlab.InLeaf(t, free.FD(), "sendfrom", "0", to); got != "sent\n" {
			t.Errorf("open box, %s: %s", to, got)
		}
	}
}

// A box may not fill the host's conntrack table; its neighbour still may open flows.
func TestFlowLimit(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	boxes, err := l.tree.BoxesID()
	l.must(err)
	table, err := nft.New(nft.Config{Boxes: boxes, Level: l.tree.Level(), Flows: 20}, slog.New(slog.DiscardHandler))
	l.must(err)
	defer table.Close()
	greedy, other := l.leaf(openEgress()), l.leaf(openEgress())
	l.must(table.Refill(l.ctx(), verdicts(greedy, other)))
	for i := range 30 {
		got := netlab.InLeaf(t, greedy.FD(), "sendfrom", fmt.Sprint(20000+i), o.far()+":9")
		if want := map[bool]string{true: "sent\n", false: "EPERM\n"}[i < 20]; got != want {
			t.Errorf("flow %d: %s", i, got)
		}
	}
	if got := netlab.InLeaf(t, other.FD(), "sendfrom", "30000", o.far()+":9"); got != "sent\n" {
		t.Error(got)
	}
}

// Short connections of a box to itself, from one port, the server closing first: the next SYN meets a
// TIME_WAIT socket, which no rule knows as the box's.
func TestTimeWait(t *testing.T) {
	l := newLab(t)
	for _, p := range []lease.Policy{deny(), openEgress()} {
		b := l.box(p)
		if got := netlab.InLeaf(t, b.FD(), "shortly", b.Address.String()); got != "ok ok ok ok \n" {
			t.Errorf("egress %s: %s", p.Egress, got)
		}
	}
}

func TestPing(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	l.must(os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 2147483647"), 0o644))
	closed, free := l.box(deny()), l.box(openEgress())
	listed := l.box(allow(t, o.far()+" icmp", o.far6()[1:len(o.far6())-1]+" icmp"))
	for _, to := range []string{o.far(), o.far6(), "127.0.0.1", "[::1]"} {
		remote := to == o.far() || to == o.far6()
		for _, c := range []struct {
			b  *box
			ok bool
		}{{closed, false}, {free, true}, {listed, remote}} {
			if got := netlab.InLeaf(t, c.b.FD(), "ping", to); (got == "ok\n") != c.ok {
				t.Errorf("box %d (%s) pings %s: %s", c.b.Number, c.b.Policy.Egress, to, got)
			}
		}
	}
}
