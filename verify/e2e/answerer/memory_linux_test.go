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
// other the answerer holds at most 12 MiB. Measured on 6.18: 10.3 to 10.5 MiB after the start, of which 3.5 are
// its own and the rest pages of the program's file that other roles share; 12.7 right after the changes.
// A zone of addresses in a map of 40-octet slots, the collector's usual pace, the memory of older zones or
// the pages of the program kept are each more than the bounds allow.
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
	a.small("after queries")
	for n := range changes {
		publish(t, 2+n, zone...)
	}
	rig.Eventually(t, 10*time.Second, "the last zone is served", func() bool {
		soa, ok := ask(t, "127.0.0.1:15353", "nobody").Ns[0].(*dns.SOA)
		return ok && soa.Serial == changes+1
	})
	a.small("after changes")
}

// What the answerer may hold: in all, with the shared pages of the program's file, and of its own.
const (
	mostMemory = 12 << 20
	mostOwn    = 4608 << 10
)

// small waits until the process holds no more.
func (a *answerer) small(when string) {
	a.t.Helper()
	show := func() {
		a.t.Logf("%s: %d KiB, %d KiB of it its own", when, a.memory("VmRSS")>>10, a.memory("RssAnon")>>10)
	}
	show()
	rig.Eventually(a.t, 20*time.Second, when+" it is small", func() bool {
		return a.memory("VmRSS") <= mostMemory && a.memory("RssAnon") <= mostOwn
	})
	show()
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
