package nfttest

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/verify/netlab"
)

func reader(t testing.TB, handler func(nft.Refused)) *nft.Reader {
	t.Helper()
	r, err := nft.NewReader(64, handler)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// Every refusal is told with the lease number of the sender and its destination, before Drain returns.
func TestRefusals(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	l.allowPing()
	var got []nft.Refused
	r := reader(t, func(e nft.Refused) { got = append(got, e) })
	l.box(deny()) // so that the number is not 1
	b, unknown := l.box(deny()), l.leaf(deny())
	tcp, udp := netlab.Echo(t, "tcp", "127.0.0.1:0", 0), netlab.Echo(t, "udp", "[::1]:0", 0)
	for _, c := range []struct {
		b             *box
		network, to   string
		number        uint16
		inbound, ping bool
	}{
		{b: b, network: "tcp", to: o.far() + ":8000", number: 2},
		{b: b, network: "udp", to: o.far6() + ":8000", number: 2},
		{b: b, network: "tcp", to: tcp, number: 2, inbound: true},
		{b: b, network: "udp", to: udp, number: 2, inbound: true},
		{b: b, network: "icmp", to: o.far(), number: 2, ping: true},
		{b: unknown, network: "tcp", to: tcp, number: 0},
	} {
		got = nil
		want := nft.Refused{Number: c.number, Protocol: c.network, Inbound: c.inbound}
		if c.ping {
			netlab.InLeaf(t, c.b.FD(), "ping", c.to)
			want.To = netip.AddrPortFrom(netip.MustParseAddr(c.to), 0)
		} else {
			l.dial(c.b, c.network, c.to)
			want.To = netip.MustParseAddrPort(c.to)
		}
		r.Drain()
		if len(got) == 0 || got[0] != want {
			t.Errorf("%s %s: %+v, want %+v", c.network, c.to, got, want)
		}
	}
	got = nil
	netlab.Dial{Network: "tcp", Address: o.far() + ":8000", Mark: 2}.From(t, unknown.FD())
	if r.Drain(); len(got) == 0 || got[0].Number != 0 {
		t.Errorf("an unknown leaf with a mark of its own: %+v", got)
	}
	l.run("nft", "add table inet other; add chain inet other o { type filter hook output priority 0; }; add rule inet other o log group 64")
	defer l.run("nft", "delete table inet other")
	got = nil
	netlab.Dial{Network: "tcp", Address: tcp}.Do()
	r.Drain()
	if len(got) != 0 {
		t.Errorf("somebody else's log: %+v", got)
	}
}

// A box that is refused all the time does not hide another one's refusal.
func TestNoisyBox(t *testing.T) {
	l := newLab(t)
	count := map[uint16]int{}
	r := reader(t, func(e nft.Refused) { count[e.Number]++ })
	noisy, quiet := l.box(deny()), l.box(deny())
	at := netlab.Echo(t, "tcp", "127.0.0.1:0", 0)
	netlab.InLeaf(t, noisy.FD(), "hammer", at, "1000")
	l.dial(quiet, "tcp", at)
	r.Drain()
	if count[1] < 40 || count[1] > 500 || count[2] != 1 {
		t.Errorf("refusals told: %v; want some 40 to 100 of box 1 and one of box 2", count)
	}
	if r.Lost() != 0 {
		t.Errorf("%d lost", r.Lost())
	}
}

func TestReaderRun(t *testing.T) {
	l := newLab(t)
	got := make(chan nft.Refused, 10)
	r := reader(t, func(e nft.Refused) { got <- e })
	if _, err := nft.NewReader(64, nil); !errors.Is(err, unix.EPERM) {
		t.Errorf("a second reader of the group: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	b := l.box(deny())
	at := netlab.Echo(t, "tcp", "127.0.0.1:0", 0)
	for range 2 {
		l.dial(b, "tcp", at)
		select {
		case e := <-got:
			if e.Number != 1 {
				t.Errorf("%+v", e)
			}
		case <-time.After(2 * time.Second):
			t.Fatal("no refusal")
		}
	}
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(2 * time.Second):
		t.Fatal("Run did not end")
	}
}
