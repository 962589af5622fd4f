package nfttest

import (
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/cut"
	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/verify/netlab"
)

// ends is a server that tells how its connections end.
func ends(t testing.TB, address string) (at string, told chan string) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	t.Cleanup(func() { l.Close() })
	told = make(chan string, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, err := io.Copy(c, c)
				told <- word(err)
			}()
		}
	}()
	return l.Addr().String(), told
}

func (l *lab) cutter() *cut.Cutter {
	l.Helper()
	c, err := cut.New(nft.Marks{}, slog.New(slog.DiscardHandler))
	l.must(err)
	l.Cleanup(func() { c.Close() })
	return c
}

// tighten gives a box a new policy as the helper does.
func (l *lab) tighten(c *cut.Cutter, b *box, p lease.Policy) (ended int) {
	l.Helper()
	p, err := p.Canonical()
	l.must(err)
	b.Policy, b.Cutting = p, true
	b.Generation ^= 1
	l.must(l.table.Put(l.ctx(), b.Verdict))
	groups, err := b.IDs()
	l.must(err)
	ended, err = c.Cut(l.ctx(), b.Verdict, groups, lease.Place{Local: isLocal}, func(uint64) uint16 { return 0 })
	l.must(err)
	b.Cutting = false
	l.must(l.table.Put(l.ctx(), b.Verdict))
	return ended
}

func isLocal(a netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	return err == nil && (a.IsLoopback() || slices.ContainsFunc(all, func(n net.Addr) bool {
		return n.(*net.IPNet).IP.Equal(a.AsSlice())
	}))
}

// Both ends of what a new policy does not admit are told at once; what it admits goes on, listeners and
// datagram sockets stay.
func TestCut(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	c := l.cutter()
	listed, listedEnds := ends(t, "127.0.0.1:0")
	other, otherEnds := ends(t, "127.0.0.1:0")
	var far6 string
	var farEnds, far6Ends chan string
	o.do(func() {
		_, farEnds = ends(t, ":8001")
		far6, far6Ends = ends(t, o.far6()+":8006")
	})
	o.echo("tcp", ":8000")
	o.echo("udp", ":8000")
	o.echo("udp", ":8001")
	p := openEgress()
	p.Ingress, p.IngressPorts = lease.FromPorts, []uint16{3500, 3501}
	b := l.box(p)
	below := b.Path() + "/sub"
	l.must(os.Mkdir(below, 0o755))
	sub, err := os.Open(below)
	l.must(err)
	defer sub.Close()
	flows := []string{"listen 0.0.0.0:3500 2", "listen 0.0.0.0:3501 2",
		"tcp " + o.far() + ":8000", "tcp " + o.far() + ":8001", "tcp " + far6, "tcp " + listed, "tcp " + other,
		"udp " + o.far() + ":8000", "udp " + o.far() + ":8001", "tcp 127.0.0.1:3500"}
	holder := netlab.Start(t, netlab.Spawn{Leaf: int(sub.Fd())}, "hold", flows...)
	if line := holder.Line(); line != "ready" {
		t.Fatal(line)
	}
	var in, in2 net.Conn
	o.do(func() {
		in, err = net.DialTimeout("tcp", o.near()+":3500", netlab.Patience(time.Second))
		l.must(err)
		in2, err = net.DialTimeout("tcp", o.near()+":3501", netlab.Patience(time.Second))
		l.must(err)
	})
	fromHost, err := net.DialTimeout("tcp", "127.0.0.1:3501", netlab.Patience(time.Second))
	l.must(err)
	t.Cleanup(func() { in.Close(); in2.Close(); fromHost.Close() })
	say := func() string {
		for _, c := range []net.Conn{in, in2, fromHost} {
			c.Write([]byte("x"))
		}
		holder.Say("how")
		return holder.Line()
	}
	// The box's own flow is answered when the listener is asked the next time.
	if got, want := say(), "listening,silence,ok listening,ok,ok ok ok ok ok ok ok ok silence"; got != want {
		t.Fatalf("before: %s\nwant    %s", got, want)
	}
	p = allow(t, o.far()+" 8000 tcp", o.far()+" 8000 udp", "127.0.0.1 "+port(listed)+" tcp")
	p.Ingress, p.IngressPorts = lease.FromPorts, []uint16{3501}
	start := time.Now()
	ended := l.tighten(c, b, p)
	took := time.Since(start)
	for name, told := range map[string]chan string{"other host": farEnds, "other host, IPv6": far6Ends, "host service": otherEnds} {
		select {
		case how := <-told:
			if how != "ECONNRESET" {
				t.Errorf("%s reads %s", name, how)
			}
		case <-time.After(netlab.Patience(time.Second)):
			t.Errorf("%s was not told", name)
		}
	}
	t.Logf("%d ended in %v, all peers told after %v", ended, took, time.Since(start))
	in.SetDeadline(time.Now().Add(netlab.Patience(time.Second)))
	if _, err := io.Copy(io.Discard, in); word(err) != "ECONNRESET" {
		t.Errorf("another host reads %v from a listener that is closed to it now", err)
	}
	if got, want := say(), "listening,ok,ECONNABORTED listening,ok,ok ok ECONNABORTED ECONNABORTED ok ECONNABORTED ok EDESTADDRREQ ok"; got != want {
		t.Errorf("after: %s\nwant   %s", got, want)
	}
	select {
	case how := <-listedEnds:
		t.Errorf("a flow that both policies admit: %s", how)
	default:
	}
	if n := l.tighten(c, b, p); n != 0 {
		t.Errorf("cut again ends %d more", n)
	}
	l.same(l.table, verdicts(b))
	l.must(fromHost.SetDeadline(time.Now().Add(netlab.Patience(time.Second))))
	p.Ingress, p.IngressPorts = lease.FromNone, nil
	l.tighten(c, b, p)
	if _, err := io.Copy(io.Discard, fromHost); word(err) != "ECONNRESET" {
		t.Errorf("this host reads %v from a listener that is closed to it now", err)
	}
}

// Where the kernel destroys no sockets, the next packet of either end of a flow is answered with a reset,
// over loopback too, where the rules look at the first packet of a connection only.
func TestCutByMark(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	c := l.cutter()
	c.MarkOnly = true
	service, told := ends(t, "127.0.0.1:0")
	o.echo("tcp", ":8000")
	p := openEgress()
	p.Ingress = lease.FromAny
	b := l.box(p)
	holder := netlab.Start(t, netlab.Spawn{Leaf: b.FD()}, "hold", "listen 0.0.0.0:3500 1", "tcp "+service, "tcp "+o.far()+":8000")
	if line := holder.Line(); line != "ready" {
		t.Fatal(line)
	}
	fromHost, err := net.DialTimeout("tcp", "127.0.0.1:3500", netlab.Patience(time.Second))
	l.must(err)
	defer fromHost.Close()
	holder.Say("how")
	if got := holder.Line(); got != "listening,silence ok ok" {
		t.Fatal(got)
	}
	p = deny()
	p.Ingress = lease.FromNone
	if n := l.tighten(c, b, p); n != 3 {
		t.Errorf("%d flows ended, want 3", n)
	}
	// The service is not told until it speaks itself or the box closes: the reset went to the box.
	if how := octet(fromHost); how != "ECONNRESET" {
		t.Errorf("this host: %s", how)
	}
	holder.Say("how")
	if got := holder.Line(); got != "listening,ECONNRESET ECONNRESET ECONNRESET" && got != "listening,silence ECONNRESET ECONNRESET" {
		t.Errorf("the box: %s", got)
	}
	if len(told) != 0 {
		t.Errorf("the service was told %s", <-told)
	}
	if o := l.dial(b, "tcp", service); o.OK() {
		t.Error("the service is reached again")
	}
}
