package nfttest

import (
	"net"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/netlab"
)

// Somebody empties the input chain: what a box sends over loopback is not judged then. Under the belt no
// answer reaches it, and nothing of that time is admitted when the chain is back.
func TestInputEmptied(t *testing.T) {
	l := newLab(t)
	l.belt()
	b, listed := l.box(deny()), l.box(allow(t, "127.0.0.1 any"))
	service := slowEcho(t)
	udp := netlab.Echo(t, "udp", "127.0.0.1:0", 0)
	for range 3 {
		l.run("nft", "flush", "chain", "inet", "minhost", "in")
		late := make(chan netlab.Outcome)
		go func() {
			late <- netlab.Dial{Network: "udp", Address: service, Timeout: time.Second}.From(t, b.FD())
		}()
		connect := make(chan netlab.Outcome)
		go func() {
			connect <- netlab.Dial{Network: "tcp", Address: service, Timeout: 2 * time.Second}.From(t, b.FD())
		}()
		if o := l.dial(b, "udp", udp); o.OK() {
			t.Error("an answer while the chain is empty")
		}
		l.must(l.table.Refill(l.ctx(), verdicts(b, listed)))
		if o := <-late; o.OK() {
			t.Errorf("an answer to what was not judged: %v", o)
		}
		if o := <-connect; o.OK() {
			t.Errorf("a connection that was not judged: %v", o)
		}
		l.reaches(listed, "udp", udp)
	}
}

// slowEcho answers datagrams after half a second, TCP at once.
func slowEcho(t *testing.T) string {
	t.Helper()
	fd, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fd.Close() })
	at := fd.LocalAddr().String()
	netlab.Echo(t, "tcp", at, 0)
	go func() {
		buf := make([]byte, 100)
		for {
			n, from, err := fd.ReadFrom(buf)
			if err != nil {
				return
			}
			time.AfterFunc(500*time.Millisecond, func() { fd.WriteTo(buf[:n], from) })
		}
	}()
	return at
}
