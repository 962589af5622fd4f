package resolverd

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	zoneNegative = "authority min.internal. 5 IN SOA min.internal. . 0 5 5 15 5\n"
	rootNegative = "authority . 5 IN SOA . . 0 5 5 15 5\n"
)

// TestViewsOverTheWire: each socket serves its view, whatever the order of the handed-over files.
func TestViewsOverTheWire(t *testing.T) {
	r := start(t, nil)
	for _, network := range []string{"udp", "tcp"} {
		for _, c := range []struct {
			to        netip.AddrPort
			ask, want string
		}{
			{r.host.addr, "host.min.internal. A", "NOERROR qr aa\nanswer host.min.internal. 5 IN A 127.0.0.1\n"},
			{r.box.addr, "host.min.internal. A", "NOERROR qr aa\nanswer host.min.internal. 5 IN A 127.0.64.254\n"},
			{r.host.addr, "example.com. A", "REFUSED qr\n"},
			{r.box.addr, "example.com. A", "NXDOMAIN qr aa\n" + rootNegative},
			{r.box.addr, "minhost.min.internal. AAAA +edns=1232", "NOERROR qr aa\nedns 1232\n" + zoneNegative},
			{r.host.addr, "nobody.min.internal. A", "NXDOMAIN qr aa\n" + zoneNegative},
		} {
			if got := ask(t, network, c.to, c.ask); got != c.want {
				t.Errorf("> %s over %s\ngot:\n%swant:\n%s", c.ask, network, got, c.want)
			}
		}
	}
}

// TestSilence: a response and a scrap get nothing, and the socket goes on.
func TestSilence(t *testing.T) {
	r := start(t, nil)
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(r.host.addr))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	query, _ := question(t, "minhost.min.internal. A")
	response := append([]byte{}, query...)
	response[2] |= 0x80
	for _, msg := range [][]byte{{}, {1}, query[:11], response, query} {
		if _, err := conn.Write(msg); err != nil {
			t.Fatal(err)
		}
	}
	conn.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 2048)
	n, err := conn.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	if got := describe(unpack(t, buf[:n])); !strings.HasPrefix(got, "NOERROR") {
		t.Errorf("first reply is %s, want that to the last query", got)
	}
	conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := conn.Read(buf); err == nil {
		t.Errorf("a second reply: %x", buf[:n])
	}
}

// TestLargeDatagram: a query that is larger than any buffer one would think of is answered.
func TestLargeDatagram(t *testing.T) {
	r := start(t, nil)
	options := "\x00\x0c\x75\x30" + strings.Repeat("\x00", 30000)
	msg := wire(head(0, 0, 1, 0, 0, 1), "\x07minhost\x03min\x08internal\x00\x00\x01\x00\x01", optWith(options))
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(r.host.addr))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(msg); err != nil {
		t.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 2048)
	n, err := conn.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	if got := describe(unpack(t, buf[:n])); !strings.HasPrefix(got, "NOERROR qr aa\nedns 1232\nanswer") {
		t.Error(got)
	}
}

// TestForeignPeer: an asker whose address is not the host's gets nothing, over UDP and TCP. It asks
// from an address of this host that the answerer is not told of.
func TestForeignPeer(t *testing.T) {
	from := otherAddress(t)
	foreign := start(t, func(s *Server) { s.peers.list = func() ([]net.Addr, error) { return nil, nil } })
	known := start(t, nil)
	query, _ := question(t, "minhost.min.internal. A")
	for _, network := range []string{"udp", "tcp"} {
		for _, c := range []struct {
			to      netip.AddrPort
			answers bool
			wait    time.Duration
		}{{known.host.addr, true, patience}, {foreign.host.addr, false, 100 * time.Millisecond}} {
			dialer := net.Dialer{Timeout: patience, LocalAddr: &net.UDPAddr{IP: from}}
			msg := query
			if network == "tcp" {
				dialer.LocalAddr = &net.TCPAddr{IP: from}
				msg = append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)
			}
			conn, err := dialer.Dial(network, c.to.String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(c.wait))
			_, _ = conn.Write(msg) // over TCP it may find the connection closed already
			n, err := conn.Read(make([]byte, 2048))
			if (n > 0) != c.answers {
				t.Errorf("%s from %s: %d octets, %v; want an answer: %v", network, from, n, err, c.answers)
			}
		}
	}
}

// otherAddress is an IPv4 address of this host that is not loopback.
func otherAddress(t *testing.T) net.IP {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if prefix, ok := a.(*net.IPNet); ok && prefix.IP.To4() != nil && !prefix.IP.IsLoopback() {
			return prefix.IP
		}
	}
	t.Skip("this host has no IPv4 address besides loopback")
	return nil
}

// TestReady: systemd hears of readiness, once, and only when lookups work.
func TestReady(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	r := start(t, nil)
	manager.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 64)
	n, err := manager.Read(buf)
	if err != nil || string(buf[:n]) != "READY=1" {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	if got := ask(t, "udp", r.host.addr, "minhost.min.internal. A"); !strings.HasPrefix(got, "NOERROR") {
		t.Error(got)
	}
	r.stop()
	manager.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := manager.Read(buf); err == nil {
		t.Errorf("a second message: %q", buf[:n])
	}
}

// TestBrokenSocketEndsServe: a socket that stays broken is an error, for the manager to restart.
func TestBrokenSocketEndsServe(t *testing.T) {
	folder := t.TempDir()
	host := newPair(t, "127.0.0.1")
	s, err := Listen(Config{Port: host.addr.Port(), Files: host.files(t), ZoneFile: filepath.Join(folder, "zone"), BootID: "boot", Log: (&logLines{}).logger()})
	if err != nil {
		t.Fatal(err)
	}
	s.sockets.udp[0].Close()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := s.Serve(ctx); !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), "read from udp") {
		t.Errorf("Serve: %v", err)
	}
}

func TestListenNeedsItsConfig(t *testing.T) {
	if _, err := Listen(Config{Port: 1}); err == nil {
		t.Error("listened without log, file and boot id")
	}
}

// TestPauseEnds: the pause between failures grows to a bound, and ends with the context.
func TestPauseEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	began := time.Now()
	for failed := range retries + 1 {
		pause(ctx, failed)
	}
	if took := time.Since(began); took > retryMax {
		t.Errorf("paused %s after the end", took)
	}
	if !addressMissing(&net.OpError{Err: os.NewSyscallError("socket", syscall.EAFNOSUPPORT)}) {
		t.Error("EAFNOSUPPORT is not a missing address")
	}
}
