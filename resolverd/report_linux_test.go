package resolverd

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gominimal/minhost/resolverd/datagram"
	"github.com/gominimal/minhost/resolverd/report"
)

// TestCounters: each kind of reply is counted, by both paths and over both networks, and the helper
// hears of it; refused names of the box view are told, others are not.
func TestCounters(t *testing.T) {
	for name, batch := range map[string]func(*net.UDPConn, bool) (datagram.Batch, error){
		"best": datagram.New, "plain": func(c *net.UDPConn, _ bool) (datagram.Batch, error) { return datagram.Plain(c), nil },
	} {
		t.Run(name, func(t *testing.T) { testCounters(t, batch) })
	}
}

func testCounters(t *testing.T, batch func(*net.UDPConn, bool) (datagram.Batch, error)) {
	path := filepath.Join(t.TempDir(), "reports")
	helper, err := report.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	refused, counters := make(chan report.Refused, 9), make(chan report.Counters, 99)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- helper.Run(ctx, report.Handler{Admit: func(p report.Peer) bool { return p.PID == int32(os.Getpid()) },
			Refused: func(r report.Refused) { refused <- r }, Counters: func(c report.Counters) { counters <- c }})
	}()
	defer func() { cancel(); <-done }()
	r := start(t, func(s *Server) { s.batch, s.report = batch, report.NewSender(path) })
	for _, network := range []string{"udp", "tcp"} {
		for _, q := range []string{
			"minhost.min.internal. A", "min.internal. SOA", "minhost.min.internal. AAAA", "min.internal. TXT", "nobody.min.internal. A",
			"example.com. A", "min.internal. AXFR", "minhost.min.internal. A CH", "minhost.min.internal. A +edns=512 +version=1",
		} {
			ask(t, network, r.host.addr, q)
		}
		ask(t, network, r.box.addr, "example.com. HTTPS")
		ask(t, network, r.box.addr, "nobody.min.internal. A")
		ask(t, network, r.box.addr, "internal. A")
		select {
		case got := <-refused:
			got.From = report.Refused{}.From
			if want := (report.Refused{Network: network, Type: 65, Name: "example.com"}); got != want {
				t.Errorf("refused %+v, want %+v", got, want)
			}
		case <-time.After(patience):
			t.Fatal("the helper hears of no refused name")
		}
	}
	want := report.Counters{report.Address: 4, report.NoData: 6, report.NoName: 4, report.Outside: 2, report.Declined: 6, report.Malformed: 2}
	for deadline := time.Now().Add(patience); r.Counters() != want; time.Sleep(time.Millisecond) { // a batch is counted after it is sent
		if time.Now().After(deadline) {
			t.Fatalf("counted %v, want %v", r.Counters().Attrs(), want.Attrs())
		}
	}
	r.tellCounters(stopped(), time.Hour)
	for got := (report.Counters{}); got != want; {
		select {
		case got = <-counters:
		case <-time.After(patience):
			t.Fatalf("the helper's last counters are %v", got.Attrs())
		}
	}
	if len(refused) != 0 {
		t.Errorf("also refused: %+v", <-refused)
	}
	r.stop()
	if r.log.count("msg=answered address=4 nodata=6") != 1 {
		t.Error("the end is not logged")
	}
}

// stopped is a context that has ended.
func stopped() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestLeaseOf: the number in a mark is a lease's only under the table's bit; other programs mark packets too.
func TestLeaseOf(t *testing.T) {
	s := &Server{leaseMark: DefaultLeaseMark}
	for mark, want := range map[uint32]uint16{0: 0, 0x1234: 0, 0x4000_1234: 0, 0x2000_1234: 0x1234, 0x6001_ffff: 0xffff, 0x2000_0000: 0} {
		if got := s.leaseOf(mark); got != want {
			t.Errorf("mark %#x is of lease %#x, want %#x", mark, got, want)
		}
	}
}
