package nfttest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// try is one way to one destination. Ways: connect, poll (non-blocking), fastopen, uring; send, sendmsg,
// connected, usend (uring); ping. "hold" and "talk" keep a flow and use it again.
type try struct {
	Way string
	To  netip.AddrPort
	UDP bool // of hold and talk
	// Brief: no answer is expected, so it is not waited for long.
	Brief bool
}

// triesChild makes the tries that come as one line of JSON each, and answers with a line of words: "ok",
// an errno, "silence".
func triesChild([]string) int {
	fmt.Println("ready")
	t := tryer{held: map[string]int{}}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var all []try
		if err := json.Unmarshal(lines.Bytes(), &all); err != nil {
			fmt.Println(err)
			return 1
		}
		words := []string{}
		for _, x := range all {
			words = append(words, errnoWord(t.do(x)))
		}
		b, _ := json.Marshal(words)
		fmt.Println(string(b))
	}
	return 0
}

func errnoWord(err error) string {
	var errno unix.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ETIMEDOUT), errors.Is(err, unix.EINPROGRESS):
		return "silence"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

type tryer struct {
	ring *ring
	held map[string]int
}

func sockaddrOf(a netip.AddrPort) (unix.Sockaddr, int) {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}, unix.AF_INET
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}, unix.AF_INET6
}

const (
	tryTime   = time.Second
	briefTime = 25 * time.Millisecond
)

func socketOf(family, kind, proto int, brief bool) (int, error) {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	limit := netlab.Patience(tryTime)
	if brief {
		limit = netlab.Patience(briefTime)
	}
	tv := unix.NsecToTimeval(limit.Nanoseconds())
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
	return fd, err
}

func (t *tryer) do(x try) error {
	to, family := sockaddrOf(x.To)
	if x.Way == "hold" || x.Way == "talk" {
		return t.flow(x, to, family)
	}
	kind, proto := unix.SOCK_STREAM, 0
	switch x.Way {
	case "send", "sendmsg", "connected", "usend":
		kind = unix.SOCK_DGRAM
	case "ping":
		kind, proto = unix.SOCK_DGRAM, unix.IPPROTO_ICMP
		if family == unix.AF_INET6 {
			proto = unix.IPPROTO_ICMPV6
		}
	}
	fd, err := socketOf(family, kind, proto, x.Brief)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := t.begin(x.Way, fd, to, family); err != nil {
		return err
	}
	return answer(fd)
}

func again(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// begin sends the first octet by the way that is tried.
func (t *tryer) begin(way string, fd int, to unix.Sockaddr, family int) error {
	octet := []byte("x")
	write := func() error { _, err := unix.Write(fd, octet); return err }
	connect := func() error { return unix.Connect(fd, to) }
	switch way {
	case "connect", "connected":
		if err := again(connect); err != nil {
			return err
		}
		return again(write)
	case "poll":
		unix.SetNonblock(fd, true)
		if err := unix.Connect(fd, to); err != nil && err != unix.EINPROGRESS {
			return err
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if err := again(func() error { _, err := unix.Poll(fds, int(netlab.Patience(tryTime).Milliseconds())); return err }); err != nil {
			return err
		}
		unix.SetNonblock(fd, false)
		if errno, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || errno != 0 {
			return errors.Join(err, unix.Errno(errno))
		}
		return again(write)
	case "fastopen":
		return again(func() error { return unix.Sendto(fd, octet, unix.MSG_FASTOPEN, to) })
	case "send":
		return unix.Sendto(fd, octet, 0, to)
	case "sendmsg":
		_, err := unix.SendmsgN(fd, octet, nil, to, 0)
		return err
	case "ping":
		kind := byte(8)
		if family == unix.AF_INET6 {
			kind = 128
		}
		return unix.Sendto(fd, []byte{kind, 0, 0, 0, 0, 0, 0, 1}, 0, to)
	case "uring", "usend":
		if t.ring == nil {
			var err error
			if t.ring, err = newRing(); err != nil {
				return err
			}
		}
		if way == "usend" {
			if errno := t.ring.sendTo(fd, octet, to); errno != 0 {
				return errno
			}
			return nil
		}
		if errno := t.ring.connect(fd, to); errno != 0 {
			return errno
		}
		return again(write)
	}
	return errors.New("no such way: " + way)
}

func answer(fd int) error {
	buf := make([]byte, 64)
	n := 0
	err := again(func() (err error) { n, err = unix.Read(fd, buf); return err })
	if err == nil && n == 0 {
		err = unix.EPIPE
	}
	return err
}

// flow keeps a connected socket under its destination, and uses it again.
func (t *tryer) flow(x try, to unix.Sockaddr, family int) error {
	key := fmt.Sprint(x.UDP, x.To)
	fd, ok := t.held[key]
	if x.Way == "hold" {
		if ok {
			unix.Close(fd)
		}
		kind := unix.SOCK_STREAM
		if x.UDP {
			kind = unix.SOCK_DGRAM
		}
		var err error
		if fd, err = socketOf(family, kind, 0, x.Brief); err != nil {
			return err
		}
		t.held[key] = fd
		if err := again(func() error { return unix.Connect(fd, to) }); err != nil {
			return err
		}
	}
	if _, err := unix.Write(fd, []byte("x")); err != nil {
		return err
	}
	return answer(fd)
}
