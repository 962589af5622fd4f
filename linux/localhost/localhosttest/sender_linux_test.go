package localhosttest

import (
	"os"
	"strings"
	"testing"

	"github.com/gominimal/minhost/verify/netlab"
)

// A socket that is bound to the box's address sends from it, whatever its control data says: a port below 1024 is
// free to it there, so that it would answer for the host's name server else. A wildcard has its port everywhere.
func TestSourceOfTheBound(t *testing.T) {
	w := newTown(t)
	leaf := w.box(1, nil)
	host, box := start(t, netlab.Spawn{Leaf: netlab.NoLeaf}), start(t, netlab.Spawn{Leaf: leaf, UID: somebody})
	host.want("ok", "s socket udp4")
	host.want("ok", "s bind 127.0.0.1:5300")
	for _, x := range []struct{ kind, bind, source, from string }{
		{"udp4", "127.0.0.1:53", "127.0.0.1", "127.0.64.1:53"}, {"udp4", "127.0.0.1:53", "127.0.0.53", "127.0.64.1:53"},
		{"udp6", "[::]:53", "::ffff:127.0.0.53", "127.0.64.1:53"}, {"udp4", "127.0.0.1:53", "127.0.64.2", "127.0.64.1:53"},
		{"udp4", "127.0.64.1:53", "127.0.64.1", "127.0.64.1:53"},
	} {
		to := "127.0.0.1:5300"
		if x.kind == "udp6" {
			to = "[::ffff:127.0.0.1]:5300"
		}
		box.want("ok", "c socket %s", x.kind)
		box.want("ok", "c bind %s", x.bind)
		box.want("ok", "c sendas %s %s", x.source, to)
		host.want(x.from, "s receive")
		box.want("ok", "c connect %s", to) // a connection asks no less
		box.want("ok", "c sendas %s %s", x.source, to)
		host.want(x.from, "s receive")
		box.want("ok", "c close")
	}
	box.want("ok", "c socket udp4")
	box.want("ok", "c bind 0.0.0.0:0")
	box.want("ok", "c sendas 127.0.0.1 127.0.0.1:5300")
	if got := host.do("s receive"); !strings.HasPrefix(got, "127.0.0.1:") {
		t.Errorf("a wildcard that says 127.0.0.1 sends from %s", got)
	}
}

// What QUIC stacks do: sockets on wildcards that are not connected, control data for the address at this end, as
// told by the datagram before, and several datagrams in one call. A server is told the box's own address, a client
// 127.0.0.1: answers to who sent from a wildcard go there.
func TestControlDataOfClients(t *testing.T) {
	w := newTown(t)
	leaf := w.box(1, nil)
	server, client := start(t, netlab.Spawn{Leaf: leaf, UID: somebody}), start(t, netlab.Spawn{Leaf: leaf, UID: somebody})
	server.want("ok", "s socket udp4")
	server.want("ok", "s tell")
	server.want("ok", "s bind 0.0.0.0:4433")
	for _, bind := range []string{"", "0.0.0.0:0"} {
		client.want("ok", "c socket udp4")
		client.want("ok", "c tell")
		if bind != "" {
			client.want("ok", "c bind %s", bind)
		}
		client.want("ok", "c segments 127.0.0.1:4433")
		server.do("s message")
		heard := server.do("s message")
		from, at, _ := strings.Cut(heard, " at ")
		if !strings.HasPrefix(from, "127.0.0.1:") || at != "127.0.64.1" {
			t.Fatalf("the server hears from %s", heard)
		}
		for _, source := range []string{at, "127.0.0.1"} { // as told, and as some that bind localhost say
			server.want("ok", "s sendas %s %s", source, from)
			client.want("127.0.0.1:4433 at 127.0.0.1", "c message")
			client.want("ok", "c sendas %s 127.0.0.1:4433", source)
			if got := server.do("s message"); got != heard {
				t.Errorf("from %s: the server hears %s, before it was %s", source, got, heard)
			}
		}
		client.want("ok", "c zerocopy 127.0.0.1:4433")
		if got := server.do("s message"); got != heard {
			t.Errorf("without a copy: the server hears %s, before it was %s", got, heard)
		}
		client.want("ok", "c close")
	}
}

// A SYN with data goes where any other does.
func TestFastOpen(t *testing.T) {
	if err := os.WriteFile("/proc/sys/net/ipv4/tcp_fastopen", []byte("1543"), 0o644); err != nil { // without cookies
		t.Fatal(err)
	}
	w := newTown(t)
	leaf := w.box(1, nil)
	server, client := start(t, netlab.Spawn{Leaf: leaf, UID: somebody}), start(t, netlab.Spawn{Leaf: leaf, UID: somebody})
	server.want("ok", "s socket tcp4")
	server.want("ok", "s bind 127.0.0.1:3740")
	server.want("ok", "s listen")
	client.want("ok", "c socket tcp4")
	client.want("ok", "c fastopen 127.0.0.1:3740")
	client.want("127.0.0.1:3740", "c peer")
	if got := server.do("s accept a"); !strings.HasPrefix(got, "127.0.0.1:") {
		t.Error(got)
	}
}
