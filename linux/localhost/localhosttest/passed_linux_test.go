package localhosttest

import (
	"testing"

	"github.com/gominimal/minhost/verify/netlab"
)

// A socket that is passed on binds where its holder may: the box that made it lends no address.
func TestPassedSockets(t *testing.T) {
	w := newTown(t)
	one, two := w.box(1, nil), w.box(2, nil)
	maker := start(t, netlab.Spawn{Leaf: one, UID: somebody})
	for _, c := range []struct {
		name, socket string
		holder       int
		binds        [][2]string // address, answer
		shown        string
	}{
		{"another box", "tcp4", two, [][2]string{{"127.0.64.1:3200", "EPERM"}, {"127.0.0.1:3200", "ok"}}, "127.0.0.1:3200"},
		{"the host", "tcp6", netlab.NoLeaf, [][2]string{{"[::ffff:127.0.64.1]:3200", "EPERM"}, {"[::ffff:127.0.64.2]:3200", "EPERM"}, {"[::1]:3200", "ok"}}, "[::1]:3200"},
	} {
		maker.want("ok", "s socket %s", c.socket)
		maker.want("ok", "s offer to-%d", c.holder)
		holder := start(t, netlab.Spawn{Leaf: c.holder, UID: somebody})
		holder.want("ok", "s take to-%d", c.holder)
		for _, b := range c.binds {
			holder.want(b[1], "s bind %s", b[0])
		}
		holder.want(c.shown, "s name")
	}
	// The host's socket in a box: the programs on boxes do not see it, the guard does.
	host := start(t, netlab.Spawn{Leaf: netlab.NoLeaf, UID: somebody})
	host.want("ok", "s socket tcp4")
	host.want("ok", "s offer from-host")
	maker.want("ok", "h take from-host")
	maker.want("EPERM", "h bind 127.0.64.2:3201")
	maker.want("ok", "h bind 127.0.0.1:3201")
	if o := (netlab.Dial{Network: "tcp", Address: "127.0.64.1:3201"}).Do(); o.OK() {
		t.Error("the host's socket is bound to the box's address")
	}
}

// Another account's sockets on the wildcard take nothing from a box: its own is the more exact one, and a
// port that a listener on the wildcard has is taken in every box.
func TestWildcardsOfTheHost(t *testing.T) {
	w := newTown(t)
	leaf := w.box(1, nil)
	host, box := start(t, netlab.Spawn{Leaf: netlab.NoLeaf, UID: somebody}), start(t, netlab.Spawn{Leaf: leaf, UID: somebody})
	for _, a := range []*actor{box, host} {
		a.want("ok", "r socket tcp4")
		a.want("ok", "r reuseport")
	}
	host.want("ok", "r bind 0.0.0.0:3200")
	host.want("ok", "r listen")
	box.want("ok", "r bind 0.0.0.0:3200")
	box.want("ok", "r listen")
	client := start(t, netlab.Spawn{Leaf: leaf, UID: somebody})
	for range 20 {
		client.want("ok", "c socket tcp4")
		client.want("ok", "c connect 127.0.0.1:3200")
		client.want("ok", "c close")
		if got := box.do("r accept a"); got == "nothing" {
			t.Fatal("a connection of the box to itself went to the host")
		}
	}
	host.want("ok", "w socket tcp4")
	host.want("ok", "w bind 0.0.0.0:3201")
	host.want("ok", "w listen")
	box.want("ok", "w socket tcp4")
	box.want("EADDRINUSE", "w bind 0.0.0.0:3201")
}

// Localhost without a listener of the box is the host's, and host.min.internal always is.
func TestTheHostsLocalhost(t *testing.T) {
	w := newTown(t)
	leaf := w.box(1, nil)
	host, box := start(t, netlab.Spawn{Leaf: netlab.NoLeaf}), start(t, netlab.Spawn{Leaf: leaf, UID: somebody})
	server := start(t, netlab.Spawn{Leaf: leaf, UID: somebody})
	for _, x := range []struct{ who *actor }{{host}, {server}} {
		x.who.want("ok", "s socket tcp4")
		x.who.want("ok", "s bind 127.0.0.1:5432")
		x.who.want("ok", "s listen")
	}
	host.want("ok", "only socket tcp4")
	host.want("ok", "only bind 127.0.0.1:5433")
	host.want("ok", "only listen")
	for _, c := range []struct{ kind, to, peer, at string }{
		{"tcp4", "127.0.0.1:5433", "127.0.0.1:5433", "only"},
		{"tcp4", "127.0.64.254:5433", "127.0.64.254:5433", "only"},
		{"tcp4", "127.0.64.254:5432", "127.0.64.254:5432", "s"},
		{"tcp6", "[::ffff:127.0.64.254]:5432", "[::ffff:127.0.64.254]:5432", "s"},
	} {
		box.want("ok", "c socket %s", c.kind)
		box.want("ok", "c connect %s", c.to)
		box.want(c.peer, "c peer")
		if got := host.do("%s accept a", c.at); got == "nothing" {
			t.Errorf("%s did not reach the host", c.to)
		}
		box.want("ok", "c close")
	}
	host.want("ok", "u socket udp4")
	host.want("ok", "u bind 127.0.0.1:5432")
	box.want("ok", "u socket udp4")
	box.want("ok", "u send 127.0.64.254:5432")
	from := host.do("u receive")
	host.want("ok", "u send %s", from)
	box.want("127.0.64.254:5432", "u receive")
}
