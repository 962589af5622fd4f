package nfttest

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/linux/belt"
	"github.com/gominimal/minhost/linux/localhost"
	"github.com/gominimal/minhost/verify/netlab"
)

// guard attaches the programs of own localhosts, for the one that stands by the input hook.
func (l *lab) guard() {
	l.Helper()
	fd, err := l.tree.BoxesFD()
	l.must(err)
	root, err := os.Open(l.tree.Mount().Point)
	l.must(err)
	l.Cleanup(func() { root.Close() })
	cookie, err := belt.NetnsCookie()
	l.must(err)
	set, err := localhost.New(fd, int(root.Fd()), l.tree.Level(), localhost.Fit(localhost.Config{NetnsCookie: cookie}), nil)
	l.must(err)
	l.must(set.Apply())
	l.Cleanup(func() { l.must(set.Detach()) })
}

// TestUnjudgedArrivesNowhere: whatever somebody does to the input half of the table alone, no datagram, and no data in
// a SYN (TCP fast open, which needs no answer), of a box that its rules do not admit arrives at a service of the
// host. What rules admit, and the host's own, goes on behind it.
func TestUnjudgedArrivesNowhere(t *testing.T) {
	l := newLab(t)
	l.belt()
	l.guard()
	// Servers and clients without cookies, all of them.
	l.must(os.WriteFile("/proc/sys/net/ipv4/tcp_fastopen", []byte("1543"), 0o644))
	b, listed := l.box(deny()), l.box(allow(t, "127.0.0.1 any", "::1 any"))
	here, here6, tcp := receiver(l, unix.SOCK_DGRAM, "127.0.0.1:8002"), receiver(l, unix.SOCK_DGRAM, "[::1]:8002"), receiver(l, unix.SOCK_STREAM, "127.0.0.1:8003")
	service, udp4, udp6 := netlab.Echo(t, "tcp", "127.0.0.1:0", 0), netlab.Echo(t, "udp", "127.0.0.1:0", 0), netlab.Echo(t, "udp", "[::1]:0", 0)
	prober := netlab.Start(t, netlab.Spawn{Leaf: b.FD()}, "oneway")
	prober.Line()
	for range 4 {
		for _, damage := range [][]string{
			{"flush", "chain", "inet", "minhost", "in"}, {"flush", "chain", "inet", "minhost", "from_box"},
			{"flush", "chain", "inet", "minhost", "refuse_in"},
			{"insert", "rule", "inet", "minhost", "in", "accept"}, {"insert", "rule", "inet", "minhost", "from_box", "accept"},
		} {
			l.run("nft", damage...)
			time.Sleep(20 * time.Millisecond)
			for _, d := range []netlab.Dial{{Network: "tcp", Address: service}, {Network: "udp", Address: udp4}} {
				if o := d.Do(); !o.OK() {
					t.Errorf("%q: a process of the host, %s: %v", damage, d.Network, o)
				}
			}
			l.must(l.table.Refill(l.ctx(), verdicts(b, listed)))
			l.reaches(listed, "tcp", service)
			l.reaches(listed, "udp", udp4)
			l.reaches(listed, "udp", udp6)
		}
	}
	prober.Say("enough")
	tried, err := strconv.Atoi(prober.Line())
	l.must(err)
	if tried < 100 {
		t.Errorf("%d tried", tried)
	}
	for name, n := range map[string]*atomic.Int64{"IPv4 datagrams": here, "IPv6 datagrams": here6, "connections": tcp} {
		if got := n.Load(); got != 0 {
			t.Errorf("%d %s of %d arrived", got, name, tried)
		}
	}
	netlab.Dial{Network: "udp", Address: "127.0.0.1:8002", Timeout: time.Second}.From(t, listed.FD())
	netlab.Dial{Network: "tcp", Address: "127.0.0.1:8003", Timeout: time.Second}.From(t, listed.FD())
	if here.Load() == 0 || tcp.Load() == 0 {
		t.Errorf("the receivers hear nobody: %d, %d", here.Load(), tcp.Load())
	}
}

// receiver counts the datagrams or connections that arrive.
func receiver(l *lab, kind int, address string) *atomic.Int64 {
	l.Helper()
	at := netip.MustParseAddrPort(address)
	family, to := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: int(at.Port()), Addr: [4]byte{127, 0, 0, 1}})
	if at.Addr().Is6() {
		family, to = unix.AF_INET6, &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	l.must(err)
	l.must(unix.Bind(fd, to))
	if kind == unix.SOCK_STREAM {
		l.must(unix.Listen(fd, 4096))
	}
	var n atomic.Int64
	go func() {
		for buf := make([]byte, 16); ; n.Add(1) {
			var err error
			if kind == unix.SOCK_DGRAM {
				_, _, err = unix.Recvfrom(fd, buf, 0)
			} else {
				var c int
				if c, _, err = unix.Accept(fd); err == nil {
					unix.Close(c)
				}
			}
			if err != nil {
				return
			}
		}
	}()
	l.Cleanup(func() { unix.Shutdown(fd, unix.SHUT_RDWR); unix.Close(fd) })
	return &n
}

// onewayChild sends to the receivers what needs no answer until its input ends, and prints how often.
func onewayChild([]string) int {
	four, six := descriptor(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)), descriptor(unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM, 0))
	enough := make(chan bool)
	fmt.Println("ready")
	go func() {
		bufio.NewScanner(os.Stdin).Scan()
		close(enough)
	}()
	for n := 0; ; n++ {
		select {
		case <-enough:
			fmt.Println(n)
			return 0
		default:
		}
		lo := [4]byte{127, 0, 0, 1}
		unix.Sendto(four, []byte("x"), 0, &unix.SockaddrInet4{Port: 8002, Addr: lo})
		unix.Sendto(six, []byte("x"), 0, &unix.SockaddrInet6{Port: 8002, Addr: netip.IPv6Loopback().As16()})
		fd := descriptor(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0))
		unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: 8003, Addr: lo})
		unix.Close(fd)
	}
}

// descriptor ends the child where there is none.
func descriptor(fd int, err error) int {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	return fd
}
