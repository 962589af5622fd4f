package portholder

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// TestFind names this very process for each kind of socket that is in the way, and nobody for a port
// that is free or only the far end of a connection.
func TestFind(t *testing.T) {
	for _, c := range []struct{ network, bound, asked string }{
		{"udp", "127.0.0.1", "127.0.0.1"},
		{"tcp", "127.0.0.1", "127.0.0.1"},
		{"udp", "0.0.0.0", "127.0.0.1"},
		{"tcp", "0.0.0.0", "127.0.0.1"},
		{"udp", "::1", "::1"},
		{"tcp", "::1", "::1"},
		{"tcp", "::", "127.0.0.1"},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			port := open(t, c.network, c.bound)
			addr := netip.AddrPortFrom(netip.MustParseAddr(c.asked), port)
			h, found := Find(c.network, addr)
			if !found || h.PID != os.Getpid() || h.UID != uint32(os.Getuid()) || !strings.HasPrefix("portholder.test", h.Program) {
				t.Errorf("%+v, %v", h, found)
			}
			if text := Remedy(c.network, addr); !strings.Contains(text, fmt.Sprintf("portholder.test, process %d; end it (kill %d)", os.Getpid(), os.Getpid())) || !strings.Contains(text, "ss -nlp --"+c.network) {
				t.Error(text)
			}
		})
	}
	port := open(t, "udp", "127.0.0.1")
	for _, free := range []struct{ network, addr string }{{"tcp", "127.0.0.1"}, {"udp", "127.0.0.2"}, {"udp", "::1"}} {
		if h, found := Find(free.network, netip.AddrPortFrom(netip.MustParseAddr(free.addr), port)); found {
			t.Errorf("%v is held by %+v", free, h)
		}
	}
	if text := Remedy("udp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), port)); !strings.HasPrefix(text, "to see who holds it: ss ") {
		t.Error(text)
	}
}

// open binds a free port and returns it.
func open(t *testing.T, network, ip string) uint16 {
	t.Helper()
	if network == "udp" {
		conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(ip)})
		if err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	}
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.ParseIP(ip)})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).AddrPort().Port()
}

// TestParse reads lines as kernels write them, and no header and no broken line.
func TestParse(t *testing.T) {
	for _, line := range []string{
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops",
		"", "1: 2 3 4 5 6 7 8 9 10", "  72: 0100007F:3BF9 00000000:0000 07 00000000:00000000 00:00000000 00000000  x 0 25 2 0 0",
		"  72: 0100007F-3BF9 00000000:0000 07 00000000:00000000 00:00000000 00000000  0 0 25 2 0 0",
	} {
		if e, ok := parseLine(line); ok {
			t.Errorf("%q is read as %+v", line, e)
		}
	}
	for name, want := range map[string]string{"dnsmasq": "dnsmasq", "a b": "a b", "": `""`, "x\x1b[2J": `"x\x1b[2J"`, "é": `"\u00e9"`} {
		if got := printable(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
