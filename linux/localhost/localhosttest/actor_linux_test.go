package localhosttest

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// actor is a process that does one call after another, and says what came of each.
type actor struct {
	t testing.TB
	p *netlab.Proc
}

func start(t testing.TB, s netlab.Spawn) *actor {
	t.Helper()
	return &actor{t, netlab.Start(t, s, "actor")}
}

// do sends one command and returns the answer.
func (a *actor) do(format string, args ...any) string {
	a.t.Helper()
	a.p.Say(fmt.Sprintf(format, args...))
	return a.p.Line()
}

// want does, and compares.
func (a *actor) want(answer, format string, args ...any) {
	a.t.Helper()
	if got := a.do(format, args...); got != answer {
		a.t.Errorf("%s: %s; want %s", fmt.Sprintf(format, args...), got, answer)
	}
}

// acts are the sockets of an actor by name.
type acts map[string]int

// actorChild reads commands: "NAME socket tcp4|tcp6|udp4|udp6", "NAME reuseaddr|reuseport", "NAME bind|connect
// ADDRESS:PORT", "NAME send ADDRESS:PORT", "NAME receive", "NAME listen|name|peer|close", "NAME accept NEW",
// "NAME offer|take ABSTRACT", and those of options_linux_test.go.
func actorChild([]string) int {
	sockets := acts{}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := strings.Fields(in.Text())
		fmt.Println(sockets.run(words[0], words[1], strings.Join(words[2:], " ")))
	}
	return 0
}

func (s acts) run(name, verb, arg string) string {
	fd := s[name]
	switch verb {
	case "socket":
		if o, ok := others()[arg]; ok {
			fd, err := unix.Socket(unix.AF_INET, o[0]|unix.SOCK_CLOEXEC, o[1])
			s[name] = fd
			return errno(err)
		}
		six, kind := strings.HasSuffix(arg, "6"), "stream"
		if strings.HasPrefix(arg, "udp") {
			kind = "dgram"
		}
		fd, err := form{Kind: kind, Six: six}.open()
		s[name] = fd
		return errno(err)
	case "reuseaddr":
		return errno(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	case "reuseport":
		return errno(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	case "bind":
		return errno(unix.Bind(fd, endpoint(arg)))
	case "connect":
		return errno(unix.Connect(fd, endpoint(arg)))
	case "listen":
		return errno(unix.Listen(fd, 8))
	case "name":
		return text(unix.Getsockname(fd))
	case "peer":
		return text(unix.Getpeername(fd))
	case "send":
		return errno(unix.Sendto(fd, []byte("x"), 0, endpoint(arg)))
	case "close":
		return errno(unix.Close(fd))
	}
	return s.more(name, verb, arg)
}

func (s acts) more(name, verb, arg string) string {
	fd := s[name]
	switch verb {
	case "receive":
		if !readable(fd, 2*time.Second) {
			return "nothing"
		}
		var buf [16]byte
		_, from, err := unix.Recvfrom(fd, buf[:], 0)
		return text(from, err)
	case "accept":
		if !readable(fd, 2*time.Second) {
			return "nothing"
		}
		accepted, from, err := unix.Accept(fd)
		s[arg] = accepted
		return text(from, err)
	case "offer":
		return errno(offer(fd, arg))
	case "take":
		got, err := take(arg)
		s[name] = got
		return errno(err)
	}
	return s.option(name, verb, arg)
}

func endpoint(s string) unix.Sockaddr {
	ap := netip.MustParseAddrPort(s)
	if ap.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: ap.Addr().As4(), Port: int(ap.Port())}
	}
	return &unix.SockaddrInet6{Addr: ap.Addr().As16(), Port: int(ap.Port())}
}

func text(a unix.Sockaddr, err error) string {
	switch s := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(s.Addr), uint16(s.Port)).String()
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(s.Addr), uint16(s.Port)).String()
	}
	return errno(err)
}

// offer passes a socket to whoever takes it, over an abstract socket that waits in the background.
func offer(fd int, name string) error {
	l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(l, &unix.SockaddrUnix{Name: "@" + name})
	}
	if err == nil {
		err = unix.Listen(l, 1)
	}
	if err == nil {
		go func() {
			c, _, err := unix.Accept(l)
			if err == nil {
				unix.Sendmsg(c, []byte("x"), unix.UnixRights(fd), nil, 0)
			}
		}()
	}
	return err
}

func take(name string) (int, error) {
	c, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(c, &unix.SockaddrUnix{Name: "@" + name}); err != nil {
		return -1, err
	}
	var data [1]byte
	rights := make([]byte, 64)
	_, n, _, _, err := unix.Recvmsg(c, data[:], rights, 0)
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return -1, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}
