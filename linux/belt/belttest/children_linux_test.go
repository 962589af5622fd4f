package belttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// option is one setsockopt call.
type option struct {
	name    string
	refused bool // to a box
	works   bool // outside; else it fails there for a reason of its own
	set     func() error
}

func options() []option {
	loopback := [4]byte{127, 0, 0, 1}
	group4, group6 := [4]byte{224, 0, 0, 251}, [16]byte{0xff, 2, 15: 0xfb}
	in4, in6, tcp := udpSocket(unix.AF_INET), udpSocket(unix.AF_INET6), socket(unix.AF_INET, unix.SOCK_STREAM)
	join4 := func(fd int) func() error {
		return func() error {
			return unix.SetsockoptIPMreqn(fd, 0, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: group4, Ifindex: 1})
		}
	}
	source := string(group4[:]) + string(loopback[:]) + string(loopback[:])
	return []option{
		{"IP_ADD_MEMBERSHIP", true, true, join4(in4)},
		{"IP_ADD_MEMBERSHIP on IPv6", true, true, join4(in6)},
		{"IP_ADD_SOURCE_MEMBERSHIP", true, true, text(udpSocket(unix.AF_INET), 0, unix.IP_ADD_SOURCE_MEMBERSHIP, source)},
		{"IP_UNBLOCK_SOURCE", true, false, text(in4, 0, unix.IP_UNBLOCK_SOURCE, source)},
		{"IP_MSFILTER", true, false, text(in4, 0, unix.IP_MSFILTER, string(make([]byte, 20)))},
		{"MCAST_JOIN_GROUP", true, true, text(udpSocket(unix.AF_INET), 0, unix.MCAST_JOIN_GROUP, groupReq(group4))},
		{"MCAST_JOIN_SOURCE_GROUP", true, false, text(in4, 0, unix.MCAST_JOIN_SOURCE_GROUP, string(make([]byte, 264)))},
		{"MCAST_BLOCK_SOURCE", true, false, text(in4, 0, unix.MCAST_BLOCK_SOURCE, string(make([]byte, 264)))},
		{"MCAST_MSFILTER", true, false, text(in4, 0, unix.MCAST_MSFILTER, string(make([]byte, 272)))},
		{"IPV6_JOIN_GROUP", true, true, func() error {
			return unix.SetsockoptIPv6Mreq(in6, 41, unix.IPV6_JOIN_GROUP, &unix.IPv6Mreq{Multiaddr: group6, Interface: 1})
		}},
		{"IPV6_JOIN_ANYCAST", true, false, text(in6, 41, unix.IPV6_JOIN_ANYCAST, string(make([]byte, 20)))},
		{"MCAST_JOIN_GROUP v6", true, false, text(in6, 41, unix.MCAST_JOIN_GROUP, string(make([]byte, 136)))},
		{"MCAST_JOIN_SOURCE_GROUP v6", true, false, text(in6, 41, unix.MCAST_JOIN_SOURCE_GROUP, string(make([]byte, 264)))},
		{"MCAST_MSFILTER v6", true, false, text(in6, 41, unix.MCAST_MSFILTER, string(make([]byte, 272)))},
		{"SO_ATTACH_REUSEPORT_CBPF", true, true, selector},
		{"SO_ATTACH_REUSEPORT_EBPF", true, false, text(udpSocket(unix.AF_INET), 1, unix.SO_ATTACH_REUSEPORT_EBPF, "\xff\xff\xff\xff")},

		{"SO_REUSEPORT", false, true, number(udpSocket(unix.AF_INET), 1, unix.SO_REUSEPORT)},
		{"IP_TTL", false, true, number(in4, 0, unix.IP_TTL)},
		{"IP_MULTICAST_TTL", false, true, number(in4, 0, unix.IP_MULTICAST_TTL)},
		{"IPV6_MULTICAST_HOPS", false, true, number(in6, 41, unix.IPV6_MULTICAST_HOPS)},
		{"IPV6_V6ONLY", false, true, number(udpSocket(unix.AF_INET6), 41, unix.IPV6_V6ONLY)},
		{"TCP_NODELAY", false, true, number(tcp, 6, unix.TCP_NODELAY)},
		// 35 and 42 mean other things at other levels.
		{"SO_PRIORITY", false, true, number(in4, 1, unix.SO_PRIORITY)},
		{"TCP_INQ", false, true, number(tcp, 6, unix.TCP_INQ)},
		// Longer than the page that a program is shown.
		{"SO_RCVBUF, 8192 octets", false, true, text(in4, 1, unix.SO_RCVBUF, string(make([]byte, 8192)))},
	}
}

func socket(family, kind int) int {
	fd, err := unix.Socket(family, kind, 0)
	if err != nil {
		panic(err)
	}
	return fd
}

func udpSocket(family int) int { return socket(family, unix.SOCK_DGRAM) }

func text(fd, level, name int, value string) func() error {
	return func() error { return unix.SetsockoptString(fd, level, name, value) }
}

func number(fd, level, name int) func() error {
	return func() error { return unix.SetsockoptInt(fd, level, name, 1) }
}

// groupReq is struct group_req for lo.
func groupReq(group [4]byte) string {
	b := make([]byte, 136)
	b[0] = 1
	b[8] = unix.AF_INET
	copy(b[12:], group[:])
	return string(b)
}

// selector puts a classic program on a SO_REUSEPORT socket.
func selector() error {
	fd := udpSocket(unix.AF_INET)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return err
	}
	ret := unix.SockFilter{Code: 6} // BPF_RET: socket 0
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF, &unix.SockFprog{Len: 1, Filter: &ret})
}

func try(o option) syscall.Errno {
	var errno syscall.Errno
	errors.As(o.set(), &errno)
	return errno
}

func optionsChild([]string) int {
	var out []syscall.Errno
	for _, o := range options() {
		out = append(out, try(o))
	}
	b, err := json.Marshal(out)
	if err != nil {
		return 1
	}
	fmt.Println(string(b))
	return 0
}

// childTB lets a child use the helpers that want a test.
type childTB struct{ testing.TB }

func (childTB) Helper()        {}
func (childTB) Cleanup(func()) {}
func (childTB) Fatal(a ...any) {
	fmt.Fprintln(os.Stderr, a...)
	os.Exit(1)
}

// innerChild sets lo up, speaks to itself, over MPTCP too, and joins a group; it prints an errno for each.
func innerChild([]string) int {
	if err := linkUp("lo"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, e := range everywhere {
		o := netlab.Dial{Network: e.network, Address: netlab.Echo(childTB{}, e.network, e.address, 0)}.Do()
		fmt.Println(int(o.Errno))
	}
	if err := multipath(); err == nil {
		fmt.Println(0)
	} else {
		fmt.Println(err)
	}
	fmt.Println(int(try(options()[0])))
	return 0
}

// multipath connects with MPTCP, as far as the kernel has it: it makes the TCP sockets itself.
func multipath() error {
	var lc net.ListenConfig
	lc.SetMultipathTCP(true)
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	d := net.Dialer{Timeout: 2 * time.Second}
	d.SetMultipathTCP(true)
	c, err := d.Dial("tcp", l.Addr().String())
	if err != nil {
		return err
	}
	return c.Close()
}

// farChild waits for a device "far" in its namespace, takes 10.99.0.2 there and prints a line for each
// datagram to port 4000.
func farChild([]string) int {
	fmt.Println("ready")
	for range 500 {
		if _, err := net.InterfaceByName("far"); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if out, err := exec.Command("ip", "addr", "add", "10.99.0.2/24", "dev", "far").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %s", err, out)
		return 1
	}
	if err := linkUp("far"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	l, err := net.ListenPacket("udp", "10.99.0.2:4000")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("listening")
	go func() {
		for buf := make([]byte, 16); ; {
			if _, _, err := l.ReadFrom(buf); err == nil {
				fmt.Println("datagram")
			}
		}
	}()
	io.Copy(io.Discard, os.Stdin)
	return 0
}

// linkUp sets a device up by ioctl.
func linkUp(name string) error {
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP)
	fd := udpSocket(unix.AF_INET)
	defer unix.Close(fd)
	return ioctl(fd, unix.SIOCSIFFLAGS, req)
}

func ioctl(fd int, request uintptr, req *unix.Ifreq) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(req)))
	if errno != 0 {
		return errno
	}
	return nil
}
