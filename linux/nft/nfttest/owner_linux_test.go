package nfttest

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/verify/netlab"
)

// owner makes a Table that owns what it writes.
func (l *lab) owner(socket *os.File) *nft.Table {
	l.Helper()
	boxes, err := l.tree.BoxesID()
	l.must(err)
	t, err := nft.NewOwner(l.ctx(), nft.Config{Boxes: boxes, Level: l.tree.Level()}, socket, slog.New(slog.DiscardHandler))
	l.must(err)
	return t
}

// TestOwner: without the belt, a table that belongs to a socket is neither flushed nor deleted by others; whoever holds
// the socket next goes on with it; and where tables can outlive their owner the next one takes it over. At no
// moment does a box reach what it may not.
func TestOwner(t *testing.T) {
	l := newLab(t)
	o := newOutside(l)
	o.echo("tcp", ":8000")
	var sink int
	o.do(func() { sink = udp(t, 8001) })
	closed, listed := l.box(deny()), l.box(allow(t, o.far()+" 8000 tcp"))
	flood := func() *netlab.Proc {
		p := netlab.Start(t, netlab.Spawn{Leaf: closed.FD()}, "flood", o.far()+":8001")
		p.Line()
		return p
	}
	control := flood()
	for drain(sink) == 0 {
		l.run("nft", "flush", "ruleset") // what it is against
	}
	control.Stop()

	socket, err := nft.OwnerSocket()
	l.must(err)
	table := l.owner(socket)
	l.must(table.Refill(l.ctx(), verdicts(closed, listed)))
	owned, persists, err := l.table.Owned(l.ctx())
	if err != nil || !owned {
		t.Fatalf("owned: %v, %v", owned, err)
	}
	drain(sink)
	p := flood()
	for i := range 50 {
		l.run("nft", "flush", "ruleset")
		for _, words := range []string{"delete table inet minhost", "flush chain inet minhost box_out", "add table inet minhost { flags dormant; }"} {
			if out, err := exec.Command("/usr/sbin/nft", words).CombinedOutput(); err == nil || !strings.Contains(string(out), "not permitted") {
				t.Fatalf("nft %s: %v %s", words, err, out)
			}
		}
		switch i % 10 {
		case 3: // the holder lives, its connection is another
			l.must(table.Close())
			table = l.owner(socket)
			l.must(table.Refill(l.ctx(), verdicts(closed, listed)))
		case 6:
			l.must(table.Put(l.ctx(), listed.Verdict))
		}
	}
	if err := l.table.Refill(l.ctx(), nil); !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EBUSY) {
		t.Errorf("another writer: %v", err)
	}
	l.reaches(listed, "tcp", o.far()+":8000")
	l.must(table.Close())
	l.must(socket.Close()) // the last holder ends
	if persists {
		l.reaches(listed, "tcp", o.far()+":8000")
		l.refused(closed, "tcp", o.far()+":8000")
		if owned, _, err := l.table.Owned(l.ctx()); owned || err != nil {
			t.Errorf("without its owner: owned %v, %v", owned, err)
		}
		socket, err = nft.OwnerSocket()
		l.must(err)
		table = l.owner(socket)
		l.must(table.Refill(l.ctx(), verdicts(closed, listed)))
		if owned, _, err := l.table.Owned(l.ctx()); !owned || err != nil {
			t.Errorf("taken over: owned %v, %v", owned, err)
		}
		l.must(table.Close())
		l.must(socket.Close())
	} else if present, _, err := l.table.Probe(l.ctx()); present || err != nil {
		t.Errorf("without its owner: present %v, %v", present, err)
	}
	if p.Stop(); persists && drain(sink) != 0 {
		t.Error("packets of a deny-all box arrived")
	}
	t.Logf("persists: %v", persists)
}
