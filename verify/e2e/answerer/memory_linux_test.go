package answerer

import (
	"fmt"
	"net"
	"sort"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// TestMemory: with 10,000 names, a burst of queries on both views and 200 changes of the zone one on the
// other the answerer stays small. Measured on 6.18: 9.6 MiB after the start (3.2 its own, the rest pages
// of the program's file that other roles share), 12.0 MiB (5.2) after the changes. The bounds leave a
// third for other kernels and machines; a zone of addresses in a map of 40-octet slots, the collector's
// usual pace or the pages of the program kept are each more than that.
func TestMemory(t *testing.T) {
	const changes = 200
	var zone []string
	for i := range 10000 {
		zone = append(zone, fmt.Sprintf("box-%d 127.0.64.%d", i, 1+i%253))
	}
	sort.Strings(zone)
	a := start(t, zone...)
	for _, server := range []string{"127.0.0.1:15353", "127.0.0.1:15354"} {
		for i := range 3000 {
			if reply := ask(t, server, fmt.Sprintf("box-%d", i)); len(reply.Answer) != 1 {
				t.Fatalf("the zone is not served: %s", reply)
			}
		}
	}
	a.small("after queries", 14<<20, 5<<20)
	for n := range changes {
		publish(t, 2+n, zone...)
	}
	rig.Eventually(t, 10*time.Second, "the last zone is served", func() bool {
		soa, ok := ask(t, "127.0.0.1:15353", "nobody").Ns[0].(*dns.SOA)
		return ok && soa.Serial == changes+1
	})
	a.small("after changes", 16<<20, 8<<20)
}

// small holds the process to so many octets in all and of its own.
func (a *answerer) small(when string, total, own int) {
	a.t.Helper()
	gotTotal, gotOwn := a.memory("VmRSS"), a.memory("RssAnon")
	a.t.Logf("%s: %d KiB, %d KiB of it its own", when, gotTotal>>10, gotOwn>>10)
	if gotTotal > total || gotOwn > own {
		a.t.Errorf("%s: %d KiB, %d KiB of it its own, at most %d and %d", when, gotTotal>>10, gotOwn>>10, total>>10, own>>10)
	}
}

// ask asks one server for an address, from a socket of its own.
func ask(t *testing.T, server, name string) *dns.Msg {
	t.Helper()
	conn, err := net.Dial("udp", server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	reply, _, err := new(dns.Client).ExchangeWithConn(new(dns.Msg).SetQuestion(name+".min.internal.", dns.TypeA), &dns.Conn{Conn: conn})
	if err != nil {
		t.Fatal(err)
	}
	return reply
}
