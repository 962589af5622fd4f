package netlab

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Dial is one attempt to reach an echo server: a blocking connect (TCP) or a connected datagram
// (UDP), then one octet there and back.
type Dial struct {
	Network string // "tcp" or "udp"
	Address string // "127.0.0.1:80", "[::1]:80"
	Mark    uint32 // SO_MARK, when not 0
	Local   string // address to bind first, "" for none
	// Timeout of each step; 0 is Patience of 300 ms.
	Timeout time.Duration
}

// Outcome tells how far a Dial came.
type Outcome struct {
	// Errno is 0 when the octet came back; ETIMEDOUT when nothing came.
	Errno syscall.Errno
	// Step that failed: "socket", "bind", "connect", "send", "receive".
	Step string
	// Took is the time of the step that failed, else of connect.
	Took time.Duration
}

// OK tells whether the octet came back.
func (o Outcome) OK() bool { return o.Errno == 0 }

func (o Outcome) String() string {
	if o.OK() {
		return fmt.Sprintf("ok in %v", o.Took)
	}
	return fmt.Sprintf("%s: %s in %v", o.Step, unix.ErrnoName(o.Errno), o.Took)
}

// Connect reaches for an echo server from this process: 0 when the octet came back.
func Connect(network, address string) (syscall.Errno, time.Duration) {
	o := Dial{Network: network, Address: address}.Do()
	return o.Errno, o.Took
}

// From does the same from a leaf (or NoLeaf), in a process of its own.
func (d Dial) From(t testing.TB, leaf int) Outcome {
	t.Helper()
	return d.With(t, Spawn{Leaf: leaf})
}

// With does the same in a process that starts as s says.
func (d Dial) With(t testing.TB, s Spawn) Outcome {
	t.Helper()
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var o Outcome
	if err := json.Unmarshal([]byte(Start(t, s, "netlab-dial", string(b)).Stop()), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func dialChild(args []string) int {
	var d Dial
	if err := json.Unmarshal([]byte(args[0]), &d); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	b, err := json.Marshal(d.Do())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	fmt.Println(string(b))
	return 0
}

// Do makes the attempt in this process.
func (d Dial) Do() Outcome {
	if d.Timeout == 0 {
		d.Timeout = Patience(300 * time.Millisecond)
	}
	to, family := sockaddr(d.Address)
	kind := unix.SOCK_STREAM
	if strings.HasPrefix(d.Network, "udp") {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return outcome("socket", err, 0)
	}
	defer unix.Close(fd)
	tv := unix.NsecToTimeval(d.Timeout.Nanoseconds())
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	if d.Mark != 0 {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, int(d.Mark)); err != nil {
			return outcome("socket", err, 0)
		}
	}
	if d.Local != "" {
		local, _ := sockaddr(d.Local)
		if err := unix.Bind(fd, local); err != nil {
			return outcome("bind", err, 0)
		}
	}
	var connected time.Duration
	buf := [1]byte{'x'}
	for _, s := range []struct {
		name string
		do   func() error
	}{
		{"connect", func() error { return unix.Connect(fd, to) }},
		{"send", func() error { _, err := unix.Write(fd, buf[:]); return err }},
		{"receive", func() error {
			n, err := unix.Read(fd, buf[:])
			if err == nil && n == 0 {
				err = unix.EPIPE
			}
			return err
		}},
	} {
		start := time.Now()
		err := retry(s.do)
		took := time.Since(start)
		if err != nil {
			return outcome(s.name, err, took)
		}
		if s.name == "connect" {
			connected = took
		}
	}
	return Outcome{Took: connected}
}

// retry repeats a call that a signal cut short (the Go runtime sends itself some).
func retry(do func() error) error {
	for {
		if err := do(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func outcome(step string, err error, took time.Duration) Outcome {
	errno := unix.EIO
	errors.As(err, &errno)
	// A blocking call that meets SO_SNDTIMEO or SO_RCVTIMEO says so.
	if errno == unix.EAGAIN || errno == unix.EINPROGRESS || errno == unix.EALREADY {
		errno = unix.ETIMEDOUT
	}
	return Outcome{Errno: errno, Step: step, Took: took}
}

func sockaddr(address string) (unix.Sockaddr, int) {
	ap := netip.MustParseAddrPort(address)
	if ap.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()}, unix.AF_INET
	}
	return &unix.SockaddrInet6{Port: int(ap.Port()), Addr: ap.Addr().As16()}, unix.AF_INET6
}
