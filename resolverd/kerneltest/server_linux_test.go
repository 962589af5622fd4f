// Package kerneltest runs the answerer in a network namespace of its own, for what only a kernel
// can show: who reaches it, and a host without IPv6. It holds no code that anything imports.
package kerneltest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/resolverd"
	"github.com/gominimal/minhost/resolverd/probe"
	"github.com/gominimal/minhost/verify/netlab"
)

func TestMain(m *testing.M) { os.Exit(netlab.Main(m, children)) }

const (
	hostView = "127.0.0.1:15353"
	boxView4 = "127.0.0.1:15354"
	boxView6 = "[::1]:15354"
)

// serve runs an answerer on sockets of its own until the test ends.
func serve(t testing.TB) { serveWith(t, func(*resolverd.Config) {}) }

func serveWith(t testing.TB, change func(*resolverd.Config)) *resolverd.Server {
	t.Helper()
	c := resolverd.Config{
		Port: resolverd.DefaultPort, BoxPort: resolverd.DefaultBoxPort,
		ZoneFile: filepath.Join(t.TempDir(), "zone"), BootID: "boot", Log: slog.New(slog.DiscardHandler),
	}
	change(&c)
	s, err := resolverd.Listen(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

func run(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(argv, " "), err, out)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestBothFamilies: the box view answers on both loopbacks, and on [::1] only where IPv6 is.
func TestBothFamilies(t *testing.T) {
	t.Run("with IPv6", func(t *testing.T) {
		serve(t)
		for _, addr := range []string{hostView, boxView4, boxView6} {
			if _, err := probe.Check(t.Context(), addr); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("without IPv6", func(t *testing.T) {
		const sysctl = "/proc/sys/net/ipv6/conf/all/disable_ipv6"
		write(t, sysctl, "1")
		defer write(t, sysctl, "0")
		serve(t)
		for _, addr := range []string{hostView, boxView4} {
			if _, err := probe.Check(t.Context(), addr); err != nil {
				t.Error(err)
			}
		}
		if _, err := probe.Check(t.Context(), boxView6); err == nil {
			t.Error("[::1] answers on a host without IPv6")
		}
	})
}

// TestOtherHost: a neighbour whose packets a DNAT rule and route_localnet bring to the loopback
// socket gets silence over UDP and a closed connection over TCP. The host itself, asking the same
// way from the same link's address, is answered.
func TestOtherHost(t *testing.T) {
	serve(t)
	run(t, "ip", "netns", "add", "neighbour")
	run(t, "ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", "neighbour")
	run(t, "ip", "addr", "add", "198.51.100.1/24", "dev", "v0")
	run(t, "ip", "link", "set", "v0", "up")
	run(t, "ip", "-n", "neighbour", "addr", "add", "198.51.100.2/24", "dev", "v1")
	run(t, "ip", "-n", "neighbour", "link", "set", "v1", "up")
	write(t, "/proc/sys/net/ipv4/conf/v0/route_localnet", "1")
	run(t, "nft", `table ip forwarded {
		chain pre { type nat hook prerouting priority dstnat; iif v0 meta l4proto { tcp, udp } th dport 53 dnat to 127.0.0.1:15353; }
		chain seen { type filter hook input priority 0; iif v0 udp dport 15353 counter; }
	}`)

	query := []byte("\xbe\xef\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07minhost\x03min\x08internal\x00\x00\x01\x00\x01")
	framed := append([]byte{0, byte(len(query))}, query...)
	host := netip.MustParseAddr("198.51.100.1")
	if n, err := exchange(t, "", &net.UDPAddr{IP: host.AsSlice()}, hostView, query); n == 0 {
		t.Errorf("the host's own address gets nothing over UDP: %v", err)
	}
	if n, err := exchange(t, "", &net.TCPAddr{IP: host.AsSlice()}, hostView, framed); n == 0 {
		t.Errorf("the host's own address gets nothing over TCP: %v", err)
	}
	if n, err := exchange(t, "neighbour", &net.UDPAddr{}, "198.51.100.1:53", query); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a neighbour over UDP: %d octets, %v", n, err)
	}
	if n, err := exchange(t, "neighbour", &net.TCPAddr{}, "198.51.100.1:53", framed); n > 0 || !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("a neighbour over TCP: %d octets, %v; want the connection closed", n, err)
	}
	out, err := exec.CommandContext(t.Context(), "nft", "list", "chain", "ip", "forwarded", "seen").CombinedOutput()
	if err != nil || strings.Contains(string(out), "packets 0 ") || !strings.Contains(string(out), "packets ") {
		t.Errorf("the neighbour's query did not come to the socket, so its silence says nothing: %v\n%s", err, out)
	}
}

// exchange sends msg from a namespace ("" is the test's own) and waits half a second for a reply.
func exchange(t *testing.T, namespace string, from net.Addr, to string, msg []byte) (int, error) {
	t.Helper()
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		if namespace != "" {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			ns, err := os.Open("/run/netns/" + namespace)
			if err == nil {
				defer ns.Close()
				err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
			}
			if err != nil {
				done <- result{0, err}
				return
			}
		}
		dialer := net.Dialer{Timeout: 20 * time.Second, LocalAddr: from}
		conn, err := dialer.Dial(from.Network(), to)
		if err != nil {
			done <- result{0, err}
			return
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(500 * time.Millisecond))
		_, _ = conn.Write(msg) // over TCP it may find the connection closed already
		n, err := conn.Read(make([]byte, 2048))
		done <- result{n, err}
	}()
	r := <-done
	return r.n, r.err
}
