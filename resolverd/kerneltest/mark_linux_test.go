package kerneltest

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/belt"
	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/resolverd"
	"github.com/gominimal/minhost/resolverd/report"
	"github.com/gominimal/minhost/verify/netlab"
)

var children = netlab.Children{"lookup": lookupChild, "flood": floodChild}

// lookupChild asks for the A of a name: network, server, name. It prints the code.
func lookupChild(args []string) int {
	client := &dns.Client{Net: args[0], Timeout: 2 * time.Second}
	reply, _, err := client.Exchange(new(dns.Msg).SetQuestion(args[2], dns.TypeA), args[1])
	if err != nil {
		fmt.Println(err)
		return 0
	}
	fmt.Print(dns.RcodeToString[reply.Rcode])
	return 0
}

// confined makes leaves with a verdict of deny in the real table, under the real belt.
func confined(t testing.TB, numbers ...uint16) (leaves []int) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tree := netlab.Tree(t)
	boxes, err := tree.BoxesID()
	must(err)
	table, err := nft.New(nft.Config{Boxes: boxes, Level: tree.Level()}, slog.New(slog.DiscardHandler))
	must(err)
	t.Cleanup(func() { table.Destroy(context.Background()); table.Close() })
	must(table.Refill(ctx, nil))
	fd, err := tree.BoxesFD()
	must(err)
	cookie, err := belt.NetnsCookie()
	must(err)
	b, err := belt.New(fd, belt.Fit(belt.Default(cookie)), nil)
	must(err)
	must(b.Apply())
	policy, err := lease.Policy{Egress: lease.Deny}.Canonical()
	must(err)
	for i, number := range numbers {
		box := netlab.Leaf(t, fmt.Sprintf("asker%d", i))
		address := netip.AddrFrom4([4]byte{127, 0, 64, byte(7 + i)})
		must(table.Put(ctx, lease.Verdict{Leaf: box.ID(), Number: number, Address: address, Policy: policy}))
		leaves = append(leaves, box.FD())
	}
	return leaves
}

// TestRefusedNamesCarryTheLease: whatever server a confined box asks, its lookup ends at the box
// view, and the helper hears of it with the number that the table put into the packet's mark. Names
// of the zone are not reported, nor is a lookup of the host, which has no lease.
func TestRefusedNamesCarryTheLease(t *testing.T) {
	const number = 0x1234
	run(t, "ip", "link", "add", "up0", "type", "veth", "peer", "name", "up1")
	t.Cleanup(func() { exec.Command("ip", "link", "del", "up0").Run() })
	run(t, "ip", "addr", "add", "203.0.113.1/24", "dev", "up0")
	run(t, "ip", "link", "set", "up0", "up")
	run(t, "ip", "route", "add", "default", "dev", "up0")
	heard := listen(t)
	serveWith(t, func(c *resolverd.Config) { c.Report = heard.path })
	leaf := confined(t, number)[0]
	for i, c := range []struct {
		network, server, code string
		leaf                  int
		lease                 uint16
	}{
		{"udp", "127.0.0.1:53", "NXDOMAIN", leaf, number},
		{"udp", "192.0.2.53:53", "NXDOMAIN", leaf, number},
		{"udp", "[::1]:53", "NXDOMAIN", leaf, number},
		{"udp", "127.0.0.1:15354", "NXDOMAIN", leaf, number},
		{"tcp", "192.0.2.53:53", "NXDOMAIN", leaf, 0}, // no mark of a stream
		{"udp", "127.0.0.1:15354", "NXDOMAIN", netlab.NoLeaf, 0},
	} {
		if got := netlab.InLeaf(t, c.leaf, "lookup", c.network, c.server, "minhost.min.internal."); got != "NOERROR" {
			t.Errorf("%s %s: minhost.min.internal: %s", c.network, c.server, got)
		}
		name := fmt.Sprintf("n%d.example.com", i)
		if got := netlab.InLeaf(t, c.leaf, "lookup", c.network, c.server, name+"."); got != c.code {
			t.Errorf("%s %s: %s: %s, want %s", c.network, c.server, name, got, c.code)
		}
		select {
		case r := <-heard.refused:
			if r.Name != name || r.Lease != c.lease || r.Network != c.network || r.Type != dns.TypeA || !r.From.IsValid() {
				t.Errorf("%s %s: the helper hears %+v, want %s of lease %#x", c.network, c.server, r, name, c.lease)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s %s: the helper hears nothing of %s", c.network, c.server, name)
		}
	}
}

// hearing is a helper's end.
type hearing struct {
	path    string
	refused chan report.Refused
}

func listen(t *testing.T) hearing {
	t.Helper()
	h := hearing{filepath.Join(t.TempDir(), "report.sock"), make(chan report.Refused, 16)}
	r, err := report.Listen(h.path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	own := func(p report.Peer) bool { return p.PID == int32(os.Getpid()) }
	go func() {
		done <- r.Run(ctx, report.Handler{Admit: own, Refused: func(r report.Refused) { h.refused <- r },
			Bad: func(p report.Peer, err error) { t.Errorf("from %+v: %v", p, err) }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return h
}
