package nfttest

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/verify/netlab"
)

// A flow that was approved once is not judged again under the same policy, but from the first packet on
// under the next one, before anything was cut; and what that one admits is approved for good again.
func TestGeneration(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	o.echo("udp", ":8000")
	o.echo("udp", ":8001")
	o.echo("tcp", ":8000")
	b := l.box(allow(t, o.far()+" 8000-8001 udp", o.far()+" 8000 tcp"))
	holder := netlab.Start(t, netlab.Spawn{Leaf: b.FD()}, "hold", "udp "+o.far()+":8000", "udp "+o.far()+":8001", "tcp "+o.far()+":8000")
	if line := holder.Line(); line != "ready" {
		t.Fatal(line)
	}
	says := func(want string) {
		t.Helper()
		holder.Say("how")
		if got := holder.Line(); got != want {
			t.Errorf("flows: %s, want %s", got, want)
		}
	}
	marked := func(generation uint32) int {
		return strings.Count(l.run("conntrack", "-L"), fmt.Sprintf("mark=%d ", 0x30000000|generation|uint32(b.Number)))
	}
	says("ok ok ok")
	if n := marked(0); n != 3 {
		t.Fatalf("%d flows are marked", n)
	}
	v := b.Verdict
	v.Policy, v.Generation = allow(t, o.far()+" 8000 udp"), 1
	l.must(l.table.Put(l.ctx(), v))
	says("ok EPERM ECONNRESET")
	p := allow(t, o.far()+" 8000 udp")
	l.tighten(l.cutter(), b, p)
	if n, old := marked(nft.DefaultMarks().Generation()), marked(0); n != 1 || old != 0 {
		t.Errorf("%d flows of the new generation, %d of the old one\n%s", n, old, l.run("conntrack", "-L"))
	}
	holder.Say("how")
	if got := holder.Line(); !strings.HasPrefix(got, "ok ") {
		t.Errorf("a flow that both admit: %s", got)
	}
}

// Flows that were not ended, for the cut behind an update failed, are not taken for those of the policy after the next,
// which has the generation that they began under.
func TestGenerationOfTheUncut(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	o.echo("udp", ":8000")
	o.echo("tcp", ":8000")
	b := l.box(openEgress())
	holder := netlab.Start(t, netlab.Spawn{Leaf: b.FD()}, "hold", "udp "+o.far()+":8000", "tcp "+o.far()+":8000")
	if line := holder.Line(); line != "ready" {
		t.Fatal(line)
	}
	v := b.Verdict
	for _, generation := range []uint8{1, 0} {
		v.Policy, v.Generation, v.Cutting = deny(), generation, true
		l.must(l.table.Put(l.ctx(), v))
		holder.Say("how")
		if got := holder.Line(); strings.Contains(got, "ok") {
			t.Errorf("generation %d: flows of the policy before: %s", generation, got)
		}
	}
}

// TestInboundOfTheUncut: where the cut behind an update failed, what nobody would judge again is refused: flows to the
// box, whoever began them, and TCP over lo. Nobody is told, for the policy may admit them: they go on once it is known.
// What the box says to its own address goes on, and what is judged packet by packet.
func TestInboundOfTheUncut(t *testing.T) {
	for _, egress := range []lease.Egress{lease.Deny, lease.Open} {
		t.Run(string(egress), func(t *testing.T) {
			l := newLab(t)
			l.uncut(newOutside(l), egress)
		})
	}
}

func (l *lab) uncut(o *outside, egress lease.Egress) {
	l.Helper()
	t, c := l.TB, l.cutter()
	service, _ := ends(t, "127.0.0.1:0")
	o.echo("udp", ":8000")
	p := openEgress()
	p.Ingress = lease.FromAny
	b := l.box(p)
	own := b.Address.String() + ":3502"
	holder := netlab.Start(t, netlab.Spawn{Leaf: b.FD()}, "hold", "listen 0.0.0.0:3500 2", "listen "+own+" 1",
		"tcp "+service, "own "+own, "udp "+o.far()+":8000")
	if line := holder.Line(); line != "ready" {
		t.Fatal(line)
	}
	udp4, _ := netlab.EchoIn(t, netlab.Spawn{Leaf: b.FD()}, "udp", o.near()+":3501", 0)
	var in, datagrams net.Conn
	var err error
	o.do(func() {
		in, err = net.DialTimeout("tcp", o.near()+":3500", netlab.Patience(time.Second))
		l.must(err)
		datagrams, err = net.Dial("udp", udp4)
		l.must(err)
	})
	fromHost, err := net.DialTimeout("tcp", "127.0.0.1:3500", netlab.Patience(time.Second))
	l.must(err)
	t.Cleanup(func() { in.Close(); datagrams.Close(); fromHost.Close() })
	say := func() string {
		in.Write([]byte("x"))
		fromHost.Write([]byte("x"))
		holder.Say("how")
		said := holder.Line() + ","
		for _, c := range []net.Conn{in, fromHost} {
			c.SetDeadline(time.Now().Add(netlab.Patience(300 * time.Millisecond)))
			_, err := c.Read(make([]byte, 1))
			said += " " + word(err)
		}
		return said + " " + octet(datagrams)
	}
	if got, want := say(), "listening,ok,ok listening,silence ok silence ok, ok ok ok"; got != want {
		t.Fatalf("before: %s\nwant    %s", got, want)
	}
	v := b.Verdict
	v.Policy, v.Generation, v.Cutting, v.Uncut = lease.Policy{Egress: egress, Ingress: lease.FromNone}, 1, true, true
	l.must(l.table.Put(l.ctx(), v))
	l.same(l.table, []lease.Verdict{v})
	out := map[lease.Egress]string{lease.Deny: "EPERM", lease.Open: "ok"}[egress]
	if got, want := say(), "listening,silence,silence listening,ok silence ok "+out+", silence silence silence"; got != want {
		t.Errorf("egress %s, uncut: %s\nwant %s", egress, got, want)
	}
	p = lease.Policy{Egress: egress, Ingress: lease.FromAny}
	b.Generation = v.Generation
	l.tighten(c, b, p)
	for end := time.Now().Add(20 * time.Second); ; { // what was dropped is sent again, later and later
		if got := say(); strings.HasPrefix(got, "listening,ok,ok listening,ok ") && strings.HasSuffix(got, ", ok ok ok") {
			break
		} else if time.Now().After(end) {
			t.Fatalf("egress %s, admitted again: %s", egress, got)
		}
	}
}
