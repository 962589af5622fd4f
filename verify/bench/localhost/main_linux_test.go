package localhost

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

func TestMain(m *testing.M) { os.Exit(netlab.Main(m, netlab.Children{"calls": callsChild})) }

// port that every place listens on, and one that it binds again and again.
const port, spare = 3000, 3001

// callsChild listens on localhost, then makes so many calls for each line "bind 1000" and
// prints the nanoseconds of processor time that they took: others may be busy too. With "lo" it is in a namespace of its own.
func callsChild(args []string) int {
	if len(args) > 0 {
		if err := linkUp(args[0]); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	l, err := socket(unix.SOCK_STREAM)
	if err == nil {
		err = unix.Bind(l, loopback(port))
	}
	if err == nil {
		err = unix.Listen(l, 4096)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	go accept(l)
	calls := calls()
	if calls["datagram"], err = datagrams(); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		verb, count, _ := strings.Cut(in.Text(), " ")
		n, err := strconv.Atoi(count)
		if err != nil {
			return 2
		}
		var began int64
		for i := range n + n/4 {
			if i == n/4 { // what was attached or taken off just before is over
				began = used()
			}
			if err := calls[verb](); err != nil {
				fmt.Println(err)
				return 1
			}
		}
		fmt.Println(used() - began)
	}
	return 0
}

// used is the processor time of this process, the kernel's for it included.
func used() int64 {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return r.Utime.Nano() + r.Stime.Nano()
}

// calls are what is measured, each with the socket that it needs.
func calls() map[string]func() error {
	return map[string]func() error{
		"bind": func() error {
			return with(unix.SOCK_DGRAM, func(fd int) error { return unix.Bind(fd, &unix.SockaddrInet4{Port: spare}) })
		},
		"connect": func() error {
			return with(unix.SOCK_STREAM, func(fd int) error {
				// A reset at the end, so that no port is left waiting.
				unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
				return unix.Connect(fd, loopback(port))
			})
		},
		"getsockname": func() error {
			return with(unix.SOCK_DGRAM, func(fd int) error { _, err := unix.Getsockname(fd); return err })
		},
	}
}

// datagrams returns a call that sends an octet over lo, between two connected sockets, and takes it.
func datagrams() (func() error, error) {
	from, err := socket(unix.SOCK_DGRAM)
	if err != nil {
		return nil, err
	}
	to, err := socket(unix.SOCK_DGRAM)
	if err != nil {
		return nil, err
	}
	if err := unix.Bind(to, loopback(0)); err != nil {
		return nil, err
	}
	at, err := unix.Getsockname(to)
	if err != nil {
		return nil, err
	}
	return func() error {
		_, err := unix.Write(from, []byte("x"))
		if err == nil {
			_, err = unix.Read(to, make([]byte, 1))
		}
		return err
	}, unix.Connect(from, at)
}

func with(kind int, do func(fd int) error) error {
	fd, err := socket(kind)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for {
		if err := do(fd); err != unix.EINTR {
			return err
		}
	}
}

func socket(kind int) (int, error) { return unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0) }

func loopback(port int) unix.Sockaddr {
	return &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: port}
}

func accept(l int) {
	for {
		if fd, _, err := unix.Accept(l); err == nil {
			unix.Close(fd)
		}
	}
}

func linkUp(name string) error {
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP)
	return with(unix.SOCK_DGRAM, func(fd int) error { return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req) })
}
