package nfttest

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/verify/netlab"
)

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
	virtual := fmt.Sprintf("10.99.%d.9", o.N)
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
	for _, to := range []string{"224.0.0.251:5353", "255.255.255.255:9", fmt.Sprintf("10.99.%d.255:9", o.N), "239.1.1.1:9"} {
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

// Flows of a box that another table marks first (policy routing saves marks there) still get answers.
func TestForeignMark(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	l.run("nft", "add table inet vpn; add chain inet vpn o { type filter hook output priority mangle; }; add rule inet vpn o ct mark set 0x80000")
	defer l.run("nft", "delete table inet vpn")
	for _, network := range []string{"tcp", "udp"} {
		o.echo(network, ":8000")
		l.reaches(l.box(allow(t, o.far()+" 8000 "+network)), network, o.far()+":8000")
	}
}
