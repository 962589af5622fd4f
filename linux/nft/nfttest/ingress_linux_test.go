package nfttest

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/verify/netlab"
)

// By default the listeners of a box are reached from this host only; ports, any and none as declared.
func TestIngress(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	for i, c := range []struct {
		ingress       lease.Ingress
		ports         []uint16
		host, outside bool
	}{
		{lease.FromHost, nil, true, false},
		{lease.FromAny, nil, true, true},
		{lease.FromPorts, []uint16{4000, 4001, 4002, 4003}, true, true},
		{lease.FromPorts, []uint16{5000}, true, false},
		{lease.FromNone, nil, false, false},
	} {
		p := deny()
		p.Ingress, p.IngressPorts = c.ingress, c.ports
		b := l.box(p)
		for _, network := range []string{"tcp", "udp"} {
			for _, family := range []string{"4", "6"} {
				bind, near := o.near(), o.near()
				if family == "6" {
					bind, near = o.near6(), o.near6()
				}
				at, _ := netlab.EchoIn(t, netlab.Spawn{Leaf: b.FD()}, network, fmt.Sprintf("%s:%d", bind, 4000+i), 0)
				d := netlab.Dial{Network: network, Address: fmt.Sprintf("%s:%s", near, port(at))}
				if out := d.Do(); out.OK() != c.host {
					t.Errorf("ingress %s %v, %s%s from the host: %v", c.ingress, c.ports, network, family, out)
				}
				if out := o.dial(d); out.OK() != c.outside {
					t.Errorf("ingress %s %v, %s%s from outside: %v", c.ingress, c.ports, network, family, out)
				}
				l.reaches(b, network, d.Address) // itself, always
			}
		}
	}
}

// A friend outside sends to a closed port of the host, so that connection tracking knows the flow; the
// box binds that port and "replies". The same with a port that a host service had.
func TestFriend(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	b := l.box(deny())
	var friend int
	o.do(func() { friend = udp(t, 7000) })
	near := netip.MustParseAddr(o.near()).As4()
	to := &unix.SockaddrInet4{Port: 6000, Addr: near}
	for _, before := range []string{"closed port", "host service that answered"} {
		var service int
		if before != "closed port" {
			service = udp(t, 6000)
		}
		l.must(unix.Sendto(friend, []byte("x"), 0, to))
		if before != "closed port" {
			buf := make([]byte, 10)
			_, from, err := unix.Recvfrom(service, buf, 0)
			l.must(err)
			l.must(unix.Sendto(service, []byte("y"), 0, from))
			l.must(unix.Close(service))
		}
		for {
			if _, _, err := unix.Recvfrom(friend, make([]byte, 10), 0); err != nil {
				break // what the host said
			}
		}
		if got := netlab.InLeaf(t, b.FD(), "sendfrom", "6000", o.far()+":7000"); got != "EPERM\n" {
			t.Errorf("%s: %s", before, got)
		}
		if _, _, err := unix.Recvfrom(friend, make([]byte, 10), 0); err == nil {
			t.Errorf("%s: the friend heard the box", before)
		}
	}
}

// A box takes over the port of a host client whose flow is established: what the other end sends on
// does not reach it.
func TestInheritedFlow(t *testing.T) {
	l := newLab(t)
	l.inherits(newOutside(l))
}

func (l *lab) inherits(o *outside) {
	l.Helper()
	t, b := l.TB, l.box(deny())
	var server int
	o.do(func() { server = udp(t, 7100) })
	client := udp(t, 6100)
	far := netip.MustParseAddr(o.far()).As4()
	l.must(unix.Sendto(client, []byte("x"), 0, &unix.SockaddrInet4{Port: 7100, Addr: far}))
	_, from, err := unix.Recvfrom(server, make([]byte, 10), 0)
	l.must(err)
	l.must(unix.Sendto(server, []byte("y"), 0, from))
	_, _, err = unix.Recvfrom(client, make([]byte, 10), 0)
	l.must(err)
	l.must(unix.Close(client))
	p := netlab.Start(t, netlab.Spawn{Leaf: b.FD()}, "hear", "6100")
	p.Line()
	l.must(unix.Sendto(server, []byte("z"), 0, from))
	if got := p.Line(); got != "nothing" {
		t.Errorf("the box heard %q", got)
	}
}

// Where loopback is not tracked (a common tuning), a box still reaches itself and nobody else.
func TestUntracked(t *testing.T) {
	l := newLab(t)
	l.run("nft", "add table inet tuning; add chain inet tuning o { type filter hook output priority -300; }; "+
		"add rule inet tuning o oif lo notrack; add chain inet tuning p { type filter hook prerouting priority -300; }; add rule inet tuning p iif lo notrack")
	t.Cleanup(func() { l.run("nft", "delete table inet tuning") })
	a, b := l.box(deny()), l.box(deny())
	for _, e := range everywhere {
		host := netlab.Echo(t, e.network, e.address, 0)
		at, _ := netlab.EchoIn(t, netlab.Spawn{Leaf: a.FD()}, e.network, e.address, 0)
		l.reaches(a, e.network, at)
		l.refused(b, e.network, at)
		l.refused(b, e.network, host)
		l.reaches(l.box(allow(t, "127.0.0.0/8 any", "::1 any")), e.network, host)
	}
}

// Host processes that mark their packets, with our bits too, are never refused.
func TestHostMarks(t *testing.T) {
	l := newLab(t)
	b := l.box(deny())
	for _, e := range everywhere {
		host := netlab.Echo(t, e.network, e.address, 0)
		at, _ := netlab.EchoIn(t, netlab.Spawn{Leaf: b.FD()}, e.network, e.address, 0)
		for _, mark := range []uint32{1, 0x80000, 0x20000000, 0x20000001, 0x30000001, 0x70000001, 0xffffffff} {
			for _, to := range []string{host, at} {
				if out := (netlab.Dial{Network: e.network, Address: to, Mark: mark}).Do(); !out.OK() {
					t.Errorf("mark %#x, %s %s: %v", mark, e.network, to, out)
				}
			}
		}
	}
}

// Lookups of a confined box go to the box view whatever server they ask, those of an open one do not,
// nor those to a server that a rule names, nor those to the box itself.
func TestLookups(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	for _, network := range []string{"tcp", "udp"} {
		netlab.Echo(t, network, "127.0.0.1:15353", 0)
		netlab.Echo(t, network, "127.0.0.1:15354", 0)
		netlab.Echo(t, network, "[::1]:15354", 0)
	}
	closed, free, named := l.box(deny()), l.box(openEgress()), l.box(allow(t, o.far()+" 53 udp"))
	unknown := l.leaf(deny())
	for _, network := range []string{"tcp", "udp"} {
		for _, to := range []string{o.far() + ":53", o.far6() + ":53", "127.0.0.53:53", "[::1]:53", "127.0.0.1:15353", "127.0.0.1:15354", "[::1]:15354"} {
			l.reaches(closed, network, to) // no such server: the box view answers
		}
		for _, to := range []string{"127.0.0.53:53", "127.0.0.1:15353", "127.0.0.1:15354", "[::1]:15354"} {
			l.refused(unknown, network, to)
		}
		l.refused(free, network, "127.0.0.53:53")
		o.echo(network, ":53")
		l.reaches(free, network, o.far()+":53")
	}
	before := countEntries(l, "sport=15354")
	l.reaches(named, "udp", o.far()+":53")
	if after := countEntries(l, "sport=15354"); after != before {
		t.Error("a lookup at a named server was redirected")
	}
	own, _ := netlab.EchoIn(t, netlab.Spawn{Leaf: closed.FD()}, "udp", closed.Address.String()+":53", 0)
	before = countEntries(l, "sport=15354")
	l.reaches(closed, "udp", own)
	if after := countEntries(l, "sport=15354"); after != before {
		t.Error("a lookup at the box's own address was redirected")
	}
}

// A sibling that sits on the port of an answerer that is gone hears no lookup, redirected or not.
func TestSquattedAnswerer(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	closed, squatter := l.box(deny()), l.box(deny())
	for _, network := range []string{"tcp", "udp"} {
		for _, at := range []string{"127.0.0.1:15353", "127.0.0.1:15354", "[::1]:15354"} {
			netlab.EchoIn(t, netlab.Spawn{Leaf: squatter.FD()}, network, at, 0)
		}
		for _, to := range []string{"127.0.0.1:15353", "127.0.0.1:15354", "[::1]:15354", "127.0.0.53:53", o.far() + ":53", o.far6() + ":53"} {
			l.refused(closed, network, to)
		}
	}
}

// A box that binds the port of a group does not take its packets from the host's members.
func TestGroupOfHost(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	group := &net.UDPAddr{IP: net.IPv4(239, 9, 9, 9), Port: 5454}
	near, err := net.InterfaceByName(o.NearLink)
	l.must(err)
	host, err := net.ListenMulticastUDP("udp4", near, group)
	l.must(err)
	defer host.Close()
	p := netlab.Start(t, netlab.Spawn{Leaf: l.box(deny()).FD()}, "hear", "5454")
	p.Line()
	o.do(func() {
		l.run("ip", "route", "add", "239.0.0.0/8", "dev", o.FarLink)
		fd := udp(t, 0)
		l.must(unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: 5454, Addr: [4]byte{239, 9, 9, 9}}))
	})
	host.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if _, _, err := host.ReadFrom(make([]byte, 10)); err != nil {
		t.Error(err)
	}
}

func countEntries(l *lab, has string) int {
	return strings.Count(l.run("conntrack", "-L"), has)
}
