package kerneltest

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/gominimal/minhost/resolverd"
	"github.com/gominimal/minhost/resolverd/report"
	"github.com/gominimal/minhost/verify/netlab"
)

// tries is after how many tries a flood says how far it came.
const tries = 20000

// floodChild asks a server for names as fast as it can, from sockets of its own, until it is killed.
// After every so many tries it prints how many in all were sent and how many refused at once.
func floodChild(args []string) int {
	var all []net.Conn
	for range 8 {
		conn, err := net.Dial("udp", args[0])
		if err != nil {
			fmt.Println(err)
			return 1
		}
		all = append(all, conn)
	}
	query, err := new(dns.Msg).SetQuestion("flood.example.com.", dns.TypeA).Pack()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for sent, refused := 0, 0; ; {
		for _, conn := range all {
			switch _, err := conn.Write(query); {
			case err == nil:
				sent++
			case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.EACCES):
				refused++
			}
		}
		if (sent+refused)%tries == 0 {
			fmt.Println(sent, refused)
		}
	}
}

// flood is what a box did that asks as fast as it can, while the host asked too.
type flood struct {
	sent, refused int // of the box's first tries
	answered      uint64
	took          time.Duration
	host          []time.Duration // of the host's queries, shortest first
}

// flooded lets the box of a leaf flood while the host asks so many queries, and meanwhile does more.
func flooded(t testing.TB, server *resolverd.Server, leaf, queries int, more func()) (f flood) {
	t.Helper()
	began, before := time.Now(), server.Counters()[report.Outside]
	box := netlab.Start(t, netlab.Spawn{Leaf: leaf}, "flood", "127.0.0.1:53")
	defer box.Kill()
	line := box.Line()
	if _, err := fmt.Sscan(line, &f.sent, &f.refused); err != nil {
		t.Fatal(line)
	}
	conn, err := dns.Dial("udp", hostView)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range queries {
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		reply, took, err := new(dns.Client).ExchangeWithConn(new(dns.Msg).SetQuestion("minhost.min.internal.", dns.TypeA), conn)
		if err != nil || len(reply.Answer) != 1 {
			t.Fatalf("the host, while a box floods: %v %v", reply, err)
		}
		f.host = append(f.host, took)
	}
	more()
	f.answered, f.took = server.Counters()[report.Outside]-before, time.Since(began)
	slices.Sort(f.host)
	return f
}

// TestFlood: a box that asks as fast as it can gets 4,000 answers and then 2,000 a second, and hears at
// once that the others are refused; meanwhile every lookup of the host and of another box is answered.
func TestFlood(t *testing.T) {
	server := serveWith(t, func(*resolverd.Config) {})
	leaves := confined(t, 1, 2)
	f := flooded(t, server, leaves[0], 300, func() {
		for range 5 {
			if got := netlab.InLeaf(t, leaves[1], "lookup", "udp", "127.0.0.1:53", "minhost.min.internal."); got != "NOERROR" {
				t.Errorf("another box, while one floods: %s", got)
			}
		}
	})
	t.Logf("of %d %d were sent and %d refused; in %v %d answered", tries, f.sent, f.refused, f.took, f.answered)
	if most := 4000 + uint64(2500*f.took.Seconds()); f.answered > most {
		t.Errorf("%d answers in %v, at most %d", f.answered, f.took, most)
	}
	if f.answered < 1000 {
		t.Errorf("%d answers: a box that asks a lot gets its share", f.answered)
	}
	if f.refused == 0 { // it would have to be slower than 2,000 a second
		t.Error("none was refused at once")
	}
}

// BenchmarkFlood is what a query of the host takes while a box floods: at most 5 ms at the 99th percentile.
func BenchmarkFlood(b *testing.B) {
	server := serveWith(b, func(*resolverd.Config) {})
	leaf := confined(b, 1)[0]
	for b.Loop() {
		f := flooded(b, server, leaf, 5000, func() {})
		median, late := f.host[len(f.host)/2], f.host[len(f.host)*99/100]
		b.ReportMetric(float64(median.Microseconds()), "us-host-p50")
		b.ReportMetric(float64(late.Microseconds()), "us-host-p99")
		b.ReportMetric(float64(f.answered)/f.took.Seconds(), "answers/s")
		if late > 5*time.Millisecond {
			b.Errorf("a query of the host takes %v at p99 while a box floods, at most 5 ms", late)
		}
	}
}

// TestFloodOverTCP: connections beyond the limit are reset at once, and then the box may ask again.
func TestFloodOverTCP(t *testing.T) {
	serve(t)
	leaf := confined(t, 1)[0]
	flood := netlab.Start(t, netlab.Spawn{Leaf: leaf}, "flood", "127.0.0.1:53")
	flood.Line()
	dial := netlab.Dial{Network: "tcp", Address: "127.0.0.1:53"}
	resets := 0
	for range 50 {
		if o := dial.From(t, leaf); o.Errno == syscall.ECONNREFUSED || o.Errno == syscall.ECONNRESET {
			resets++
		}
	}
	flood.Kill()
	if resets == 0 {
		t.Error("no connection was refused while the box floods")
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if netlab.InLeaf(t, leaf, "lookup", "tcp", "127.0.0.1:53", "minhost.min.internal.") == "NOERROR" {
			return
		}
		if time.Now().After(end) {
			t.Fatal("after the flood the box still cannot look anything up")
		}
	}
}
