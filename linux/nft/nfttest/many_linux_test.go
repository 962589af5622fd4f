package nfttest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/verify/netlab"
)

// manyLeaves is more than one account may have.
const manyLeaves = 10000

// crowd is a tree full of leaves that the table knows.
type crowd struct {
	*lab
	dir      string
	verdicts []lease.Verdict
}

func (c *crowd) path(i int) string { return filepath.Join(c.dir, fmt.Sprintf("many%d", i)) }

// make makes the directory of a leaf and returns its id.
func (c *crowd) make(i int) uint64 {
	c.Helper()
	c.must(os.Mkdir(c.path(i), 0o755))
	var st unix.Stat_t
	c.must(unix.Stat(c.path(i), &st))
	return st.Ino
}

// dial reaches from the cgroup at a path below a leaf.
func (c *crowd) dial(i int, below, network, address string) netlab.Outcome {
	c.Helper()
	dir := filepath.Join(c.path(i), below)
	c.must(os.MkdirAll(dir, 0o755))
	f, err := os.Open(dir)
	c.must(err)
	defer f.Close()
	return netlab.Dial{Network: network, Address: address}.From(c, int(f.Fd()))
}

// TestManyLeaves: of ten thousand leaves each has its own verdict, in sub-cgroups of any depth too; and a
// leaf that is removed and made again under its name is another one, which reaches nothing.
func TestManyLeaves(t *testing.T) {
	l := newLab(t)
	l.belt()
	o := newOutside(l)
	for _, network := range []string{"tcp", "udp"} {
		o.echo(network, ":8000")
		o.echo(network, ":8001")
	}
	policies := []lease.Policy{deny(), allow(t, o.far()+" 8000 tcp"), allow(t, o.far()+" 8001 udp"), openEgress()}
	reach := [][4]bool{{}, {true}, {false, false, false, true}, {true, true, true, true}} // tcp 8000, tcp 8001, udp 8000, udp 8001
	c := &crowd{lab: l, dir: filepath.Dir(netlab.Leaf(t, "first").Path())}
	t.Cleanup(c.remove)
	for i := range manyLeaves {
		c.verdicts = append(c.verdicts, lease.Verdict{Leaf: c.make(i), Number: uint16(i + 1),
			Address: netip.AddrFrom4([4]byte{127, 65, byte(i >> 8), byte(i)}), Policy: policies[i%4]})
	}
	l.must(l.table.Refill(l.ctx(), c.verdicts))
	check := func(i int, below string, want [4]bool) {
		t.Helper()
		for n, network := range []string{"tcp", "tcp", "udp", "udp"} {
			if out := c.dial(i, below, network, o.far()+[]string{":8000", ":8001"}[n%2]); out.OK() != want[n] {
				t.Errorf("leaf %d%s, policy %d, %s %d: %v", i, below, i%4, network, 8000+n%2, out)
			}
		}
	}
	for range 4 {
		i := rand.IntN(manyLeaves/4) * 4
		for kind := range 4 {
			check(i+kind, "", reach[kind])
			check(i+kind, "/a/b/c/d/e/f/g/h", reach[kind])
		}
	}
	for i := range 40 {
		c.must(os.Remove(c.path(i)))
		if id := c.make(i); id == c.verdicts[i].Leaf {
			t.Fatalf("the id %d was given again", id)
		}
	}
	for kind := range 4 {
		check(kind+8, "", [4]bool{})
	}
	v := c.verdicts[11]
	l.must(l.table.Delete(l.ctx(), v))
	var st unix.Stat_t
	l.must(unix.Stat(c.path(11), &st))
	v.Leaf = st.Ino
	l.must(l.table.Put(l.ctx(), v))
	check(11, "", reach[3])
}

// remove takes the leaves away; nobody is in them any more.
func (c *crowd) remove() {
	for i := range manyLeaves {
		for below := c.path(i) + "/a/b/c/d/e/f/g/h"; len(below) > len(c.dir); below = filepath.Dir(below) {
			unix.Rmdir(below)
		}
	}
}
