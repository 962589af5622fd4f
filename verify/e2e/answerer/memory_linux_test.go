package answerer

import (
	"fmt"
	"net"
	"sort"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestMemory: with 10,000 names and after a burst on all sockets the answerer needs little memory of
// its own. Measured: 12 MiB in all, of which 10 are pages of the program's file that other roles
// share. The bounds are twice that, for other kernels and machines.
func TestMemory(t *testing.T) {
	var zone []string
	for i := range 10000 {
		zone = append(zone, fmt.Sprintf("box-%d 127.0.64.%d", i, 1+i%253))
	}
	sort.Strings(zone)
	a := start(t, zone...)
	for _, server := range []string{"127.0.0.1:15353", "127.0.0.1:15354"} {
		conn, err := net.Dial("udp", server)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		c := &dns.Conn{Conn: conn}
		conn.SetDeadline(time.Now().Add(30 * time.Second))
		for i := range 3000 {
			if err := c.WriteMsg(new(dns.Msg).SetQuestion(fmt.Sprintf("box-%d.min.internal.", i), dns.TypeA)); err != nil {
				t.Fatal(err)
			}
			reply, err := c.ReadMsg()
			if err != nil {
				t.Fatal(err)
			}
			if len(reply.Answer) != 1 {
				t.Fatalf("the zone is not served: %s", reply)
			}
		}
	}
	total, own := a.memory("VmRSS"), a.memory("RssAnon")
	t.Logf("%d KiB, %d KiB of it its own", total>>10, own>>10)
	if total > 24<<20 || own > 12<<20 {
		t.Errorf("%d KiB, %d KiB of it its own", total>>10, own>>10)
	}
}
