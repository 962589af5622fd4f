package listenerstest

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/gominimal/minhost/linux/listeners"
	"github.com/gominimal/minhost/verify/netlab"
)

func TestMain(m *testing.M) { os.Exit(netlab.Main(m)) }

func list(t *testing.T) []listeners.Socket {
	t.Helper()
	l, err := listeners.New()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	all, err := l.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A server's socket is listed with the cgroup that it was made in, both families and protocols; it is
// gone with its process.
func TestCgroupOfAListener(t *testing.T) {
	leaf := netlab.Leaf(t, "b1")
	for _, c := range []struct {
		network, address string
		udp              bool
	}{{"tcp4", "127.0.0.1:0", false}, {"tcp6", "[::1]:0", false}, {"udp4", "127.0.0.1:0", true}, {"udp6", "[::1]:0", true}} {
		at, proc := netlab.EchoIn(t, netlab.Spawn{Leaf: int(leaf.FD())}, c.network, c.address, 0)
		want := listeners.Socket{UDP: c.udp, Local: netip.MustParseAddrPort(at), Cgroup: leaf.ID()}
		if all := list(t); !slices.Contains(all, want) {
			t.Errorf("%s: %+v is not among %+v", c.network, want, all)
		}
		proc.Kill()
		if all := list(t); slices.Contains(all, want) {
			t.Errorf("%s: still there behind its process", c.network)
		}
	}
}

// Clients are no listeners, and a connection that was accepted is none either.
func TestClientsAreNone(t *testing.T) {
	server, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := net.Dial("tcp4", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	accepted, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	connected, err := net.Dial("udp4", "127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	defer connected.Close()
	all := list(t)
	at := netip.MustParseAddrPort(server.Addr().String())
	if n := len(all); n != 1 || all[0].Local != at || all[0].UDP {
		t.Errorf("%+v, want %v alone", all, at)
	}
}

func TestClientPorts(t *testing.T) {
	first, last, err := listeners.ClientPorts()
	if err != nil || first == 0 || last <= first {
		t.Errorf("%d to %d, %v", first, last, err)
	}
}
