package nfttest

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/lease"
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

// A service of the host that sits on a box's own address, by the wildcard or not, is the host's.
func TestHostOnOwnAddress(t *testing.T) {
	l := newLab(t)
	b := l.box(deny())
	own := b.Address.String()
	for _, network := range []string{"tcp", "udp"} {
		for _, bind := range []string{"0.0.0.0:0", own + ":0"} {
			at := netlab.Echo(t, network, bind, 0)
			d := netlab.Dial{Network: network, Address: own + ":" + port(at), Local: own + ":0"}
			if out := d.From(t, b.FD()); out.OK() || out.Errno == unix.ETIMEDOUT {
				t.Errorf("%s at %s: %v", network, at, out)
			}
		}
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
