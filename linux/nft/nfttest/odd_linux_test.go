package nfttest

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// odd are ways to make a socket of a box send otherwise than others: root's too, which an account has not. Each is
// set where the kernel lets it be.
var odd = map[string]func(fd int, device string, to netip.Addr){
	"plain":           func(int, string, netip.Addr) {},
	"device":          func(fd int, device string, _ netip.Addr) { unix.BindToDevice(fd, device) },
	"loopback device": func(fd int, _ string, _ netip.Addr) { unix.BindToDevice(fd, "lo") },
	"without routes":  func(fd int, _ string, _ netip.Addr) { unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DONTROUTE, 1) },
	"broadcast":       func(fd int, _ string, _ netip.Addr) { unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1) },
	"interactive":     func(fd int, _ string, _ netip.Addr) { unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, 6) },
	"priority of ours": func(fd int, _ string, _ netip.Addr) {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, 0x60000001)
	},
	"mark of ours": func(fd int, _ string, _ netip.Addr) {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, 0x78000001)
	},
	"encapsulation": func(fd int, _ string, _ netip.Addr) { unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_ENCAP, 2) },
	"segments":      func(fd int, _ string, _ netip.Addr) { unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 1) },
	"source route": func(fd int, _ string, to netip.Addr) {
		hop := to.As4()
		unix.SetsockoptString(fd, unix.IPPROTO_IP, unix.IP_OPTIONS, string(append([]byte{131, 7, 4}, append(hop[:], 0)...)))
	},
	"record route": func(fd int, _ string, _ netip.Addr) {
		unix.SetsockoptString(fd, unix.IPPROTO_IP, unix.IP_OPTIONS, string([]byte{7, 7, 4, 0, 0, 0, 0, 0}))
	},
	"transparent": func(fd int, _ string, _ netip.Addr) {
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TRANSPARENT, 1)
		unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{192, 0, 2, 9}})
	},
	"address of the other": func(fd int, _ string, to netip.Addr) {
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_FREEBIND, 1)
		unix.Bind(fd, &unix.SockaddrInet4{Addr: to.As4()})
	},
	"name server's port": func(fd int, _ string, _ netip.Addr) { unix.Bind(fd, &unix.SockaddrInet4{Port: 53}) },
	"box view's port": func(fd int, _ string, _ netip.Addr) {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		unix.Bind(fd, &unix.SockaddrInet4{Port: 15354})
	},
}

// TestOddSockets: nothing that a socket of a deny-all box can be made to do reaches a service here or on another host,
// and none of it puts a packet on the wire.
func TestOddSockets(t *testing.T) {
	l := newLab(t)
	l.belt()
	o := newOutside(l)
	for _, network := range []string{"tcp", "udp"} {
		o.echo(network, ":8000")
		netlab.Echo(t, network, "0.0.0.0:8000", 0)
	}
	b := l.box(deny())
	var wire int
	o.do(func() { wire = wireOf(l) })
	if d := (netlab.Dial{Network: "udp", Address: o.far() + ":8000"}).Do(); !d.OK() || drain(wire) == 0 {
		t.Fatalf("the wire is not heard: %v", d)
	}
	out := netlab.InLeaf(t, b.FD(), "odd", o.NearLink, o.far(), "127.0.0.1", o.near(), "0.0.0.0", "127.1.2.3")
	if n := strings.Count(out, "\n"); n != 2*5*len(odd) {
		t.Errorf("%d were tried", n)
	}
	for line := range strings.Lines(out) {
		if strings.HasSuffix(line, ": ok\n") {
			t.Errorf("reached: %s", line)
		}
	}
	if n := drain(wire); n != 0 {
		t.Errorf("%d packets of the box are on the wire", n)
	}
}

// wireOf hears what arrives here as IPv4: neighbours ask for one another by IPv6 and ARP.
func wireOf(l *lab) int {
	l.Helper()
	const ethIP = 0x0008 // ETH_P_IP, big-endian
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, ethIP)
	l.must(err)
	tv := unix.Timeval{Usec: 300_000}
	l.must(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv))
	l.Cleanup(func() { unix.Close(fd) })
	return fd
}

// oddChild tries every way to every address and says what each came to.
func oddChild(args []string) int {
	for name, set := range odd {
		for _, address := range args[1:] {
			for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_STREAM} {
				to := netip.MustParseAddr(address)
				fd := descriptor(socketOf(unix.AF_INET, kind, 0, true))
				set(fd, args[0], netip.MustParseAddr(args[1]))
				err := unix.Connect(fd, &unix.SockaddrInet4{Port: 8000, Addr: to.As4()})
				if err == nil {
					if _, err = unix.Write(fd, []byte("x")); err == nil {
						err = answer(fd)
					}
				}
				fmt.Printf("%s, %d to %s: %s\n", name, kind, to, errnoWord(err))
				unix.Close(fd)
			}
		}
	}
	return 0
}
