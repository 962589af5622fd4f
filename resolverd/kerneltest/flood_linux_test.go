package kerneltest

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/gominimal/minhost/resolverd"
	"github.com/gominimal/minhost/resolverd/report"
	"github.com/gominimal/minhost/verify/netlab"
)

// floodChild asks a server for names as fast as it can, from sockets of its own, until it is killed.
// After 20,000 it prints how many were sent and how many refused at once.
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
		if sent+refused == 20000 {
			fmt.Println(sent, refused)
		}
	}
}

// TestFlood: a box that asks as fast as it can gets 4,000 answers and then 2,000 a second, and hears at
// once that the others are refused; meanwhile every lookup of the host and of another box is answered.
// The times are for people (0.05 and 0.9 ms on two busy cores): 5 ms at p99 is what the design asks for.
func TestFlood(t *testing.T) {
	server := serveWith(t, func(*resolverd.Config) {})
	leaves := confined(t, 1, 2)
	began := time.Now()
	flood := netlab.Start(t, netlab.Spawn{Leaf: leaves[0]}, "flood", "127.0.0.1:53")
	var sent, refused int
	if line := flood.Line(); !scan(line, &sent, &refused) {
		t.Fatal(line)
	}
	var times []time.Duration
	for range 300 {
		one := time.Now()
		reply, _, err := (&dns.Client{Timeout: 10 * time.Second}).Exchange(new(dns.Msg).SetQuestion("minhost.min.internal.", dns.TypeA), hostView)
		if err != nil || len(reply.Answer) != 1 {
			t.Fatalf("the host, while a box floods: %v %v", reply, err)
		}
		times = append(times, time.Since(one))
	}
	for range 5 {
		if got := netlab.InLeaf(t, leaves[1], "lookup", "udp", "127.0.0.1:53", "minhost.min.internal."); got != "NOERROR" {
			t.Errorf("another box, while one floods: %s", got)
		}
	}
	answered := server.Counters()[report.Outside]
	took := time.Since(began)
	flood.Kill()
	slices.Sort(times)
	t.Logf("of 20000 %d were sent and %d refused; in %v %d answered; a query of the host took %v at the median, %v at p99",
		sent, refused, took, answered, times[len(times)/2], times[len(times)*99/100])
	if most := 4000 + uint64(2500*took.Seconds()); answered > most {
		t.Errorf("%d answers in %v, at most %d", answered, took, most)
	}
	if answered < 1000 {
		t.Errorf("%d answers: a box that asks a lot gets its share", answered)
	}
	if refused == 0 { // it would have to be slower than 2,000 a second
		t.Error("none was refused at once")
	}
}

func scan(line string, numbers ...*int) bool {
	_, err := fmt.Sscan(strings.TrimSpace(line), numbers[0], numbers[1])
	return err == nil
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
