package localhosttest

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// form is one way to make a socket and to name an address with it.
type form struct {
	Six, Only bool   // IPv6, and IPv6 only
	Kind      string // "stream", "dgram"
	Address   string // "" for none
	Port      string // "P", "Q" for fixed ones, "0"
}

func (f form) String() string {
	family := "4"
	if f.Six {
		family = "6"
	}
	if f.Only {
		family = "6only"
	}
	if f.Address == "" {
		return f.Kind + family + " unbound"
	}
	return fmt.Sprintf("%s%s [%s]:%s", f.Kind, family, f.Address, f.Port)
}

// ports of one case: what P and Q mean.
type ports struct{ p, q int }

func (x ports) number(s string) int {
	switch s {
	case "P":
		return x.p
	case "Q":
		return x.q
	}
	return 0
}

// name shows an address with the port as P, Q, 0 or *.
func (x ports) name(a unix.Sockaddr) string {
	var ip netip.Addr
	var port int
	switch s := a.(type) {
	case *unix.SockaddrInet4:
		ip, port = netip.AddrFrom4(s.Addr), s.Port
	case *unix.SockaddrInet6:
		ip, port = netip.AddrFrom16(s.Addr), s.Port
	default:
		return "none"
	}
	shown := "*"
	switch port {
	case x.p:
		shown = "P"
	case x.q:
		shown = "Q"
	case 0:
		shown = "0"
	}
	return ip.String() + " " + shown
}

// sockaddr of a text in the form's family; an IPv4 address in an IPv6 socket is mapped.
func (f form) sockaddr(address string, port int) unix.Sockaddr {
	ip := netip.MustParseAddr(address)
	if f.Six {
		return &unix.SockaddrInet6{Addr: ip.As16(), Port: port}
	}
	return &unix.SockaddrInet4{Addr: ip.As4(), Port: port}
}

// open makes the socket.
func (f form) open() (int, error) {
	family, kind := unix.AF_INET, unix.SOCK_STREAM
	if f.Six {
		family = unix.AF_INET6
	}
	if f.Kind == "dgram" {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil || !f.Six {
		return fd, err
	}
	only := 0
	if f.Only {
		only = 1
	}
	return fd, unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, only)
}

func errno(err error) string {
	var e syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &e):
		return unix.ErrnoName(e)
	}
	return strings.ReplaceAll(err.Error(), " ", "_")
}

func (x ports) local(fd int) string {
	a, err := unix.Getsockname(fd)
	if err != nil {
		return errno(err)
	}
	return x.name(a)
}

func (x ports) peer(fd int) string {
	a, err := unix.Getpeername(fd)
	if err != nil {
		return errno(err)
	}
	return x.name(a)
}

// readable waits for something to read: on loopback it is there when the sender returns, nearly always.
func readable(fd int, patience time.Duration) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(p, int(patience.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return n > 0 && err == nil
		}
	}
}

// receive takes a datagram and says from whom.
func (x ports) receive(fd int, patience time.Duration) (string, unix.Sockaddr) {
	if !readable(fd, patience) {
		return "nothing", nil
	}
	var buf [16]byte
	_, from, err := unix.Recvfrom(fd, buf[:], 0)
	if err != nil {
		return errno(err), nil
	}
	return x.name(from), from
}
