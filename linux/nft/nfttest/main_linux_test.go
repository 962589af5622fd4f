package nfttest

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux/belt"
	"github.com/gominimal/minhost/linux/cgroup"
	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/verify/netlab"
)

func TestMain(m *testing.M) {
	os.Exit(netlab.Main(m, children))
}

// lab is a tree with a table for it.
type lab struct {
	testing.TB
	tree  *cgroup.Tree
	table *nft.Table
	next  uint16
}

func newLab(t testing.TB) *lab {
	t.Helper()
	tree := netlab.Tree(t)
	table := open(t, tree)
	l := &lab{TB: t, tree: tree, table: table}
	l.must(table.Refill(l.ctx(), nil))
	l.run("conntrack", "-F")
	if strings.HasPrefix(t.Name(), "TestWithBelt/") {
		l.belt()
	}
	t.Cleanup(func() { l.must(table.Destroy(l.ctx())) })
	return l
}

// belt puts the belt on boxes; it ends with the tree.
func (l *lab) belt() {
	l.Helper()
	fd, err := l.tree.BoxesFD()
	l.must(err)
	cookie, err := belt.NetnsCookie()
	l.must(err)
	b, err := belt.New(fd, belt.Fit(belt.Default(cookie)), nil)
	l.must(err)
	l.must(b.Apply())
}

// allowPing opens ping sockets, which a new network namespace allows nobody.
func (l *lab) allowPing() {
	l.Helper()
	l.must(os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 2147483647"), 0o644))
}

// open makes a Table for the tree, as another process would.
func open(t testing.TB, tree *cgroup.Tree) *nft.Table {
	t.Helper()
	boxes, err := tree.BoxesID()
	if err != nil {
		t.Fatal(err)
	}
	table, err := nft.New(nft.Config{Boxes: boxes, Level: tree.Level()}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

func (l *lab) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), netlab.Patience(20*time.Second))
	l.Cleanup(cancel)
	return ctx
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// box is a leaf with a verdict in the table.
type box struct {
	*cgroup.Leaf
	lease.Verdict
}

// box makes a leaf and puts its policy into the table.
func (l *lab) box(p lease.Policy) *box {
	l.Helper()
	b := l.leaf(p)
	l.must(l.table.Put(l.ctx(), b.Verdict))
	return b
}

// leaf makes a leaf that the table does not know yet.
func (l *lab) leaf(p lease.Policy) *box {
	l.Helper()
	l.next++
	canonical, err := p.Canonical()
	l.must(err)
	leaf := netlab.Leaf(l, fmt.Sprintf("box%d", l.next))
	return &box{leaf, lease.Verdict{Leaf: leaf.ID(), Number: l.next,
		Address: netip.AddrFrom4([4]byte{127, 0, 64, byte(l.next)}), Policy: canonical}}
}

func deny() lease.Policy { return lease.Policy{Egress: lease.Deny} }

func openEgress() lease.Policy { return lease.Policy{Egress: lease.Open} }

// allow makes a policy from rules like "127.0.0.1 8000-8010 tcp".
func allow(t testing.TB, rules ...string) lease.Policy {
	t.Helper()
	p := lease.Policy{Egress: lease.Rules}
	for _, text := range rules {
		f := strings.Fields(text)
		if len(f) == 2 {
			f = []string{f[0], "", f[1]}
		}
		r, err := lease.ParseRule(f[0], f[1], lease.Protocol(f[2]))
		if err != nil {
			t.Fatal(err)
		}
		p.Rules = append(p.Rules, r)
	}
	return p
}

func (l *lab) dial(b *box, network, address string) netlab.Outcome {
	l.Helper()
	return netlab.Dial{Network: network, Address: address}.From(l, b.FD())
}

// reaches fails the test when the box does not get its octet back.
func (l *lab) reaches(b *box, network, address string) {
	l.Helper()
	if o := l.dial(b, network, address); !o.OK() {
		l.Errorf("box %d, %s %s: %v; want ok", b.Number, network, address, o)
	}
}

// refused fails the test when the box gets through, or when nothing refuses it within the 300 ms of a Dial:
// under a dropped packet, or an ICMP answer to a blocking connect, that is the end.
func (l *lab) refused(b *box, network, address string) {
	l.Helper()
	o := l.dial(b, network, address)
	if o.OK() || o.Errno == unix.ETIMEDOUT {
		l.Errorf("box %d, %s %s: %v; want a refusal at once", b.Number, network, address, o)
	}
}

func port(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// run runs a program of the machine, outside boxes.
func (l *lab) run(name string, args ...string) string {
	l.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		l.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
