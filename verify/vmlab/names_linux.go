package vmlab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// Names is the DNS server of the outside world: every name is the outside itself.
type Names struct{ asked chan string }

// ServeNames starts it; it ends with the test.
func ServeNames(t testing.TB) *Names {
	t.Helper()
	n := &Names{asked: make(chan string, 10000)}
	for _, network := range []string{"udp", "tcp"} {
		ready := make(chan struct{})
		s := &dns.Server{Addr: "[::]:53", Net: network, Handler: n, NotifyStartedFunc: func() { close(ready) }}
		failed := make(chan error, 1)
		go func() { failed <- s.ListenAndServe() }()
		select {
		case <-ready:
		case err := <-failed:
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Shutdown() })
	}
	return n
}

// ServeDNS implements dns.Handler.
func (n *Names) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	a := new(dns.Msg)
	a.SetReply(q)
	name, kind := q.Question[0].Name, q.Question[0].Qtype
	select {
	case n.asked <- name:
	default:
	}
	if kind == dns.TypeA {
		rr, err := dns.NewRR(fmt.Sprintf("%s 1 IN A %s", name, Outside))
		if err == nil {
			a.Answer = append(a.Answer, rr)
		}
	}
	w.WriteMsg(a)
}

// Leaked returns the names of the zone that the outside world was asked for since the last call.
func (n *Names) Leaked() []string {
	var zone []string
	for {
		select {
		case name := <-n.asked:
			if strings.HasSuffix(strings.ToLower(name), "min.internal.") {
				zone = append(zone, name)
			}
		default:
			return zone
		}
	}
}
