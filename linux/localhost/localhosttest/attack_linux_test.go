package localhosttest

import (
	"os"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux"
	"github.com/gominimal/minhost/verify/netlab"
)

const somebody = 1000 // an account without capabilities

// Inside 127.0.0.0/8 a box binds its own address only, by whatever name, whoever it is and with whatever
// option; ports below 1024 are free there and nowhere else.
func TestBoxBindsItsOwnOnly(t *testing.T) {
	w := newTown(t)
	one, two := w.box(1, nil), w.box(2, nil)
	victim := start(t, netlab.Spawn{Leaf: two, UID: somebody})
	victim.want("ok", "s socket tcp4")
	victim.want("ok", "s reuseport")
	victim.want("ok", "s bind 0.0.0.0:3000")
	victim.want("ok", "s listen")
	for _, uid := range []uint32{somebody, 0} {
		a := start(t, netlab.Spawn{Leaf: one, UID: uid})
		for _, x := range []struct{ kind, address, want string }{
			{"tcp4", "127.0.64.2:3000", "EPERM"}, {"tcp6", "[::ffff:127.0.64.2]:3000", "EPERM"}, {"udp4", "127.0.64.2:3000", "EPERM"},
			{"tcp4", "127.0.64.2:0", "EPERM"}, {"tcp4", "127.0.0.2:0", "EPERM"}, {"udp6", "[::ffff:127.0.0.53]:53", "EPERM"},
			{"tcp4", "127.0.64.254:3000", "EPERM"}, {"tcp4", "127.255.255.254:3000", "EPERM"},
			{"tcp4", "127.0.64.1:80", "ok"}, {"tcp4", "0.0.0.0:81", "ok"}, {"tcp4", "127.0.0.1:82", "ok"}, {"tcp6", "[::1]:83", "ok"},
			{"tcp6", "[::]:84", "ok"}, {"udp4", "127.0.0.1:85", "ok"}, {"udp6", "[::1]:86", "ok"}, {"tcp4", "127.0.0.1:0", "ok"},
			{"tcp4", "192.0.2.1:3000", "EADDRNOTAVAIL"},
		} {
			a.want("ok", "x socket %s", x.kind)
			a.want("ok", "x reuseport")
			a.want(x.want, "x bind %s", x.address)
			a.want("ok", "x close")
		}
	}
	shared := w.box(3, func(h *lease.Home) { h.Own = false })
	s := start(t, netlab.Spawn{Leaf: shared, UID: somebody})
	s.want("ok", "x socket tcp4")
	s.want("EACCES", "x bind 127.0.0.1:80")
	s.want("EPERM", "x bind 127.0.64.2:3001")
	s.want("ok", "x bind 127.0.64.3:3001")
}

// Nobody outside binds a leased address, and what is bound to it before is seen.
func TestNobodyElseBinds(t *testing.T) {
	w := newTown(t)
	w.box(1, nil)
	for _, uid := range []uint32{somebody, 0} {
		a := start(t, netlab.Spawn{Leaf: netlab.NoLeaf, UID: uid})
		for _, x := range []struct{ kind, address, want string }{
			{"tcp4", "127.0.64.1:3000", "EPERM"}, {"tcp6", "[::ffff:127.0.64.1]:3000", "EPERM"}, {"udp4", "127.0.64.1:0", "EPERM"},
			{"tcp4", "127.0.64.2:3000", "ok"}, {"tcp4", "127.0.0.1:3000", "ok"}, {"tcp6", "[::]:3000", "ok"}, {"tcp4", "0.0.0.0:3000", "ok"},
		} {
			a.want("ok", "x socket %s", x.kind)
			a.want("ok", "x reuseaddr")
			a.want("ok", "x reuseport")
			a.want(x.want, "x bind %s", x.address)
			a.want("ok", "x close")
		}
	}
	inside := start(t, netlab.Spawn{Leaf: netlab.NoLeaf, Cloneflags: syscall.CLONE_NEWNET})
	inside.want("ok", "x socket tcp4")
	inside.want("ok", "x bind 127.0.64.1:3000") // another namespace has its own
	if err := w.homes.Delete(lease.Home{Leaf: w.leafs["b1"].ID(), Address: address(1)}); err != nil {
		t.Fatal(err)
	}
	a := start(t, netlab.Spawn{Leaf: netlab.NoLeaf, UID: somebody})
	a.want("ok", "x socket tcp4")
	a.want("ok", "x bind 127.0.64.1:3000")
}

// A process in boxes that is in no leaf, and one in the leaf of nobody, are nobody.
func TestUnknownLeaf(t *testing.T) {
	w := newTown(t)
	w.box(1, nil)
	stranger := netlab.Leaf(t, "stranger")
	fd, err := w.tree.BoxesFD()
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range []int{stranger.FD(), fd} {
		a := start(t, netlab.Spawn{Leaf: leaf})
		a.want("ok", "x socket tcp4")
		a.want("EPERM", "x bind 127.0.64.1:3000")
		a.want("ok", "x bind 127.0.0.1:3000")
		a.want("127.0.0.1:3000", "x name")
		a.want("ok", "x close")
	}
}

// What was bound before the lease, listening or not, keeps the address from being given.
func TestBindBeforeLease(t *testing.T) {
	w := newTown(t)
	for _, c := range []struct {
		name string
		do   func(a *actor)
	}{
		{"UDP", func(a *actor) {
			a.want("ok", "s socket udp4")
			a.want("ok", "s bind 127.0.64.7:4000")
		}},
		{"TCP", func(a *actor) {
			a.want("ok", "s socket tcp6")
			a.want("ok", "s bind [::ffff:127.0.64.7]:4000")
			a.want("ok", "s listen")
		}},
		{"TCP of IPv4", func(a *actor) {
			a.want("ok", "s socket tcp4")
			a.want("ok", "s bind 127.0.64.7:4000")
			a.want("ok", "s listen")
		}},
		{"UDP of IPv6", func(a *actor) {
			a.want("ok", "s socket udp6")
			a.want("ok", "s bind [::ffff:127.0.64.7]:4000")
		}},
		{"TCP that does not listen yet", func(a *actor) {
			a.want("ok", "s socket tcp4")
			a.want("ok", "s bind 127.0.64.7:4000")
		}},
	} {
		a := start(t, netlab.Spawn{Leaf: netlab.NoLeaf, UID: somebody})
		c.do(a)
		if err := w.homes.Reserve(address(7)); err != nil {
			t.Fatal(err)
		}
		if err := linux.AddressUnused(address(7)); err == nil {
			t.Errorf("%s: the address is free", c.name)
		}
		a.want("ok", "t socket tcp4")
		a.want("EPERM", "t bind 127.0.64.7:4001")
		a.want("ok", "s close")
		if err := linux.AddressUnused(address(7)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := w.homes.Delete(lease.Home{Address: address(7)}); err != nil {
			t.Fatal(err)
		}
	}
}

// A sub-cgroup of a leaf is the leaf.
func TestSubCgroup(t *testing.T) {
	w := newTown(t)
	w.box(1, nil)
	path := w.leafs["b1"].Path() + "/inner"
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	a := start(t, netlab.Spawn{Leaf: int(d.Fd()), UID: somebody})
	a.want("ok", "x socket tcp4")
	a.want("ok", "x bind 0.0.0.0:80")
	a.want("ok", "x listen")
	a.want("0.0.0.0:80", "x name")
	if o := (netlab.Dial{Network: "tcp", Address: "127.0.64.1:80"}).Do(); o.Step == "connect" {
		t.Error(o)
	}
}

// A namespace that a box makes for itself has a whole 127.0.0.0/8 of its own.
func TestNamespaceInABox(t *testing.T) {
	w := newTown(t)
	a := start(t, netlab.Spawn{Leaf: w.box(1, nil), Cloneflags: syscall.CLONE_NEWNET})
	a.want("ok", "x socket tcp4")
	a.want("ok", "x bind 127.0.0.2:3000")
	a.want("ok", "y socket tcp4")
	a.want("ok", "y bind 127.0.64.2:3000")
	a.want("ok", "z socket tcp4")
	a.want("ok", "z bind 0.0.0.0:3001")
	a.want("ok", "z listen")
	a.want("0.0.0.0:3001", "z name")
	a.want("ok", "w socket tcp4")
	a.want("EADDRINUSE", "w bind 127.0.0.3:3001") // it is a wildcard
}
