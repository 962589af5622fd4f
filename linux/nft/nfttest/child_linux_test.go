package nfttest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// children are what this test binary does in leaves.
var children = netlab.Children{"ping": pingChild, "talk": talkChild, "sendfrom": sendFromChild, "hear": hearChild, "hammer": hammerChild, "flood": floodChild, "shortly": shortlyChild, "hold": holdChild, "tries": triesChild, "forge": forgeChild, "routed": routedChild, "oneway": onewayChild, "sendas": sendAsChild, "pingas": pingAsChild, "raw": rawChild, "odd": oddChild, "member": memberChild, "knock": knockChild, "heir": heirChild, "passer": passerChild, "around": aroundChild, "powers": powersChild, "subflow": subflowChild}

// talkChild keeps one connection to an echo server and says "ok" for each octet that came back, 50 ms
// apart, until its input ends.
func talkChild(args []string) int {
	c, err := net.DialTimeout("tcp", args[0], time.Second)
	if err != nil {
		fmt.Println(err)
		return 0
	}
	end := make(chan struct{})
	go func() {
		os.Stdin.Read(make([]byte, 1))
		close(end)
	}()
	for {
		c.SetDeadline(time.Now().Add(2 * time.Second))
		buf := []byte("x")
		if _, err := c.Write(buf); err != nil {
			fmt.Println(err)
			return 0
		}
		if _, err := c.Read(buf); err != nil {
			fmt.Println(err)
			return 0
		}
		fmt.Println("ok")
		select {
		case <-end:
			return 0
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// pingChild sends one echo request from a ping socket and prints "ok" when the reply came.
func pingChild(args []string) int {
	addr := netip.MustParseAddr(strings.Trim(args[0], "[]"))
	family, proto, request := unix.AF_INET, unix.IPPROTO_ICMP, byte(8)
	var to unix.Sockaddr = &unix.SockaddrInet4{}
	if addr.Is6() {
		family, proto, request = unix.AF_INET6, unix.IPPROTO_ICMPV6, 128
		to = &unix.SockaddrInet6{Addr: addr.As16()}
	} else {
		to = &unix.SockaddrInet4{Addr: addr.As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM, proto)
	if err == nil {
		tv := unix.Timeval{Usec: 300_000}
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
		err = unix.Sendto(fd, []byte{request, 0, 0, 0, 0, 0, 0, 1}, 0, to)
	}
	if err == nil {
		_, err = unix.Read(fd, make([]byte, 100))
	}
	if err != nil {
		fmt.Println(err)
		return 0
	}
	fmt.Println("ok")
	return 0
}

// sendFromChild binds a local UDP port and sends one octet to an address; prints "sent" or the errno.
func sendFromChild(args []string) int {
	local, err := strconv.Atoi(args[0])
	if err != nil {
		return 2
	}
	to := netip.MustParseAddrPort(args[1])
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: local})
	}
	if err == nil {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1)
		err = unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		fmt.Println(unix.ErrnoName(errno))
		return 0
	}
	fmt.Println("sent")
	return 0
}

// hearChild binds a UDP port, says so, and prints what comes within 300 ms, or "nothing".
func hearChild(args []string) int {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
	}}
	pc, err := lc.ListenPacket(context.Background(), "udp4", ":"+args[0])
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	pc.SetReadDeadline(time.Now().Add(netlab.Patience(300 * time.Millisecond)))
	buf := make([]byte, 100)
	n, _, err := pc.ReadFrom(buf)
	if err != nil {
		fmt.Println("nothing")
		return 0
	}
	fmt.Println(string(buf[:n]))
	return 0
}

// hammerChild dials so many times as fast as refusals come.
func hammerChild(args []string) int {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return 2
	}
	for range n {
		netlab.Dial{Network: "tcp", Address: args[0]}.Do()
	}
	return 0
}

// floodChild sends datagrams until its input ends, whatever it is told, and prints how many it tried.
func floodChild(args []string) int {
	to := netip.MustParseAddrPort(args[0])
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return 1
	}
	var ended atomic.Bool
	go func() {
		os.Stdin.Read(make([]byte, 1))
		ended.Store(true)
	}()
	fmt.Println("ready")
	n := 0
	for ; !ended.Load(); n++ {
		_ = unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	}
	fmt.Println(n)
	return 0
}

// shortlyChild connects four times from one port to a server of its own on an address; the server
// closes first. It prints "ok" or an error for each.
func shortlyChild(args []string) int {
	at := netip.AddrPortFrom(netip.MustParseAddr(args[0]), 4321)
	l, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(at))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for range 4 {
		d := net.Dialer{Timeout: netlab.Patience(500 * time.Millisecond), LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(at.Addr(), 4322)),
			Control: func(_, _ string, c syscall.RawConn) error {
				return c.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
			}}
		c, err := d.Dial("tcp4", at.String())
		if err != nil {
			fmt.Print(err, " ")
			continue
		}
		s, err := l.Accept()
		if err != nil {
			return 1
		}
		s.Close()
		c.Read(make([]byte, 1)) // the server's FIN
		c.Close()
		time.Sleep(10 * time.Millisecond)
		fmt.Print("ok ")
	}
	fmt.Println()
	return 0
}
