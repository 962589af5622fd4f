package nfttest

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// outside is another host, its IPv6 addresses in brackets.
type outside struct{ *netlab.Outside }

func newOutside(l *lab) *outside {
	l.Helper()
	return &outside{netlab.NewOutside(l)}
}

func (o *outside) near() string  { return o.Near }
func (o *outside) far() string   { return o.Far }
func (o *outside) near6() string { return "[" + o.Near6 + "]" }
func (o *outside) far6() string  { return "[" + o.Far6 + "]" }

func (o *outside) do(f func())                         { o.Do(f) }
func (o *outside) echo(network, address string) string { return o.Echo(network, address) }
func (o *outside) dial(d netlab.Dial) netlab.Outcome   { return o.Dial(d) }

// udp opens a datagram socket; the caller's thread decides where.
func udp(t testing.TB, port int) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: port})
	}
	if err != nil {
		t.Error(err)
	}
	tv := unix.Timeval{Usec: 200_000}
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// drain counts the datagrams that wait at a socket.
func drain(fd int) (n int) {
	for {
		if _, _, err := unix.Recvfrom(fd, make([]byte, 100), 0); err != nil {
			return n
		}
		n++
	}
}
