package localhosttest

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// No option and no order of calls makes a bind of a box to another's address, whoever runs it.
func TestOtherWaysToBind(t *testing.T) {
	w := newTown(t)
	one := w.box(1, nil)
	w.box(2, nil)
	for _, uid := range []uint32{somebody, 0} {
		a := start(t, netlab.Spawn{Leaf: one, UID: uid})
		for _, x := range []struct{ kind, option string }{{"tcp4", "freebind"}, {"udp4", "freebind"}, {"tcp4", "transparent"}, {"udp6", "transparent"}, {"tcp4", "lo"}, {"udp4", "lo"}} {
			a.want("ok", "x socket %s", x.kind)
			if got := a.do("x %s", x.option); got != "ok" && (x.option != "transparent" || got != "EPERM" || uid == 0) {
				t.Errorf("account %d, %s: %s", uid, x.option, got)
			}
			for _, address := range []string{"127.0.64.2:3710", "127.0.64.254:3710", "127.0.0.53:3710"} {
				if x.kind == "udp6" {
					address = "[::ffff:" + address[:len(address)-5] + "]:3710"
				}
				a.want("EPERM", "x bind %s", address)
			}
			a.want("ok", "x close")
		}
		// After a connection is given up the address is asked for again.
		for _, kind := range []string{"udp4", "tcp4"} {
			a.want("ok", "x socket %s", kind)
			a.want("ok", "x bind 127.0.0.1:3710")
			a.do("x connect 127.0.0.1:3999")
			a.want("ok", "x disconnect")
			if got := a.do("x bind 127.0.64.2:3710"); got != "EPERM" && got != "EINVAL" {
				t.Errorf("%s: behind a connection: %s", kind, got)
			}
			a.want("127.0.0.1:3710", "x name")
			a.want("ok", "x close")
		}
		// A socket for both families that is bound takes no other one; before that it gets what its options say then.
		a.want("ok", "x socket tcp6")
		a.want("ok", "x six-only")
		a.want("ok", "x bind [::]:3100")
		a.want("EINVAL", "x mixed")
		a.want("ok", "x listen")
		if o := (netlab.Dial{Network: "tcp", Address: "127.0.64.1:3100"}).Do(); o.OK() || o.Errno != unix.ECONNREFUSED {
			t.Errorf("a socket that takes no IPv4 is reached by it: %v", o)
		}
		a.want("ok", "x close")
		a.want("ok", "x socket tcp6")
		a.want("ok", "x bind [::]:3100")
		a.want("EINVAL", "x six-only")
		a.want("[::]:3100", "x name")
		a.want("ok", "x close")
		// Another protocol of datagrams is bound as UDP is.
		a.want("ok", "x socket udplite4")
		a.want("EPERM", "x bind 127.0.64.2:3710")
		a.want("ok", "x bind 127.0.0.1:3710")
		a.want("127.0.0.1:3710", "x name")
		a.want("ok", "x close")
	}
}

// Ping and raw sockets pass no program when they are bound (their protocols bind for themselves): such a socket has
// another's address, and the table refuses what it sends from there (linux/nft). What is sent to that address
// is not shown to it: no other protocol's port is taken, and raw sockets are root's.
func TestSocketsWithoutHook(t *testing.T) {
	w := newTown(t)
	one, two := w.box(1, nil), w.box(2, nil)
	if err := os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 2147483647"), 0o644); err != nil {
		t.Fatal(err)
	}
	a, b := start(t, netlab.Spawn{Leaf: one}), start(t, netlab.Spawn{Leaf: two, UID: somebody})
	for _, kind := range []string{"ping4", "raw4"} {
		a.want("ok", "%s socket %s", kind, kind)
		a.want("ok", "%s bind 127.0.64.2:0", kind)
	}
	b.want("ok", "s socket tcp4")
	b.want("ok", "s bind 127.0.0.1:3720")
	b.want("ok", "s listen")
	if o := (netlab.Dial{Network: "tcp", Address: "127.0.64.2:3720"}).Do(); o.Step == "connect" {
		t.Error(o)
	}
}

// A datagram socket that was connected to a server of the box keeps the box's address (it is bound by then), and
// reaches its servers when it is connected again.
func TestConnectedElsewhereAfter(t *testing.T) {
	w := newTown(t)
	leaf := w.box(1, nil)
	s, c := start(t, netlab.Spawn{Leaf: leaf, UID: somebody}), start(t, netlab.Spawn{Leaf: leaf, UID: somebody})
	s.want("ok", "s socket udp4")
	s.want("ok", "s bind 127.0.0.1:3730")
	c.want("ok", "c socket udp4")
	c.want("ok", "c connect 127.0.0.1:3730")
	c.want("ok", "c disconnect")
	c.want("ok", "c connect 127.0.0.1:3001")
	c.want("ok", "c connect 127.0.0.1:3730")
	c.want("127.0.0.1:3730", "c peer")
	c.want("ok", "c send 127.0.0.1:3730")
	if from := s.do("s receive"); from == "nothing" {
		t.Error("a socket that was connected twice reaches nobody")
	}
}

// A server that is bound to the device lo as well is found at the address of the box, and not by the box as localhost:
// the lookup of these programs knows no device. A client that is bound to it finds what others find.
func TestBoundToDevice(t *testing.T) {
	w := newTown(t)
	leaf := w.box(1, nil)
	for _, x := range []struct{ server, client, to, want string }{
		{"lo", "", "127.0.0.1:3760", "ECONNREFUSED"}, {"lo", "", "127.0.64.1:3760", "ok"}, {"lo", "lo", "127.0.64.1:3760", "ok"},
		{"", "lo", "127.0.0.1:3760", "ok"}, {"", "lo", "127.0.64.1:3760", "ok"},
	} {
		s, c := start(t, netlab.Spawn{Leaf: leaf, UID: somebody}), start(t, netlab.Spawn{Leaf: leaf, UID: somebody})
		for a, device := range map[*actor]string{s: x.server, c: x.client} {
			a.want("ok", "x socket tcp4")
			if device != "" {
				a.want("ok", "x %s", device)
			}
		}
		s.want("ok", "x reuseaddr")
		s.want("ok", "x bind 127.0.0.1:3760")
		s.want("ok", "x listen")
		c.want(x.want, "x connect %s", x.to)
		c.want("ok", "x close")
		s.want("ok", "x close")
	}
}
