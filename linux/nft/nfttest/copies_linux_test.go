package nfttest

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/netlab"
)

// ways hand data to a socket otherwise than by write: without a copy, from a file or a pipe, several at once, later, or by
// a ring's worker.
var ways = map[string]func(fd int) error{
	"write":    func(fd int) error { _, err := unix.Write(fd, []byte("x")); return err },
	"zerocopy": zerocopy,
	"sendfile": func(fd int) error {
		f, err := unix.MemfdCreate("data", 0)
		if err == nil {
			if _, err = unix.Pwrite(f, []byte("x"), 0); err == nil {
				_, err = unix.Sendfile(fd, f, new(int64), 1)
			}
		}
		return err
	},
	"splice": func(fd int) error {
		return piped(func(from int) error { _, err := unix.Splice(from, nil, fd, nil, 1, 0); return err })
	},
	"vmsplice, spliced with more to come": func(fd int) error {
		return piped(func(from int) error {
			_, err := unix.Splice(from, nil, fd, nil, 1, unix.SPLICE_F_MORE|unix.SPLICE_F_GIFT)
			if err == nil {
				_, err = unix.Write(fd, []byte("y"))
			}
			return err
		})
	},
	"many": func(fd int) error {
		iov := unix.Iovec{Base: &[]byte("x")[0], Len: 1}
		all := [2]struct {
			h unix.Msghdr
			n uint64
		}{{h: unix.Msghdr{Iov: &iov, Iovlen: 1}}, {h: unix.Msghdr{Iov: &iov, Iovlen: 1}}}
		_, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&all)), 2, 0, 0, 0)
		return orNil(errno)
	},
	"corked": func(fd int) error {
		if err := unix.Send(fd, []byte("x"), unix.MSG_MORE); err != nil {
			return err
		}
		return unix.Send(fd, []byte("y"), 0)
	},
	"urgent":         func(fd int) error { return unix.Send(fd, []byte("x"), unix.MSG_OOB) },
	"ring, zerocopy": func(fd int) error { return ringSend(fd, opSendZC, 0) },
	"ring's worker":  func(fd int) error { return ringSend(fd, opSend, sqeAsync) },
}

func zerocopy(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1); err != nil {
		return err
	}
	return unix.Send(fd, make([]byte, 1000), unix.MSG_ZEROCOPY)
}

func piped(use func(from int) error) error {
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		return err
	}
	octet := []byte("x")
	if _, err := unix.Vmsplice(p[1], []unix.Iovec{{Base: &octet[0], Len: 1}}, 0); err != nil {
		return err
	}
	return use(p[0])
}

func ringSend(fd int, op, with byte) error {
	r, err := newRing()
	if err != nil {
		return err
	}
	defer unix.Close(r.fd)
	r.with = with
	octet := []byte("x")
	return orNil(r.do(op, fd, unsafe.Pointer(&octet[0]), 1, 0))
}

// TestNoWayAround: what a box is refused leaves by no other way of sending either: as a datagram, and on a connection
// from before the policy that refuses it.
func TestNoWayAround(t *testing.T) {
	l := newLab(t)
	l.belt()
	o := newOutside(l)
	o.do(func() { swallow(l) })
	b := l.box(openEgress())
	holder := netlab.Start(t, netlab.Spawn{Leaf: b.FD()}, "around", o.far()+":8000")
	for range ways {
		if line := holder.Line(); !strings.HasSuffix(line, ": ok") && !strings.HasSuffix(line, ": EINVAL") { // a ring of an older kernel
			t.Fatalf("while it may: %s", line)
		}
	}
	v := b.Verdict
	v.Policy, v.Generation = deny(), 1
	l.must(l.table.Put(l.ctx(), v))
	var wire int
	o.do(func() { wire = wireOf(l) })
	drain(wire)
	holder.Say("go")
	for range ways {
		if line := holder.Line(); strings.HasSuffix(line, ": ok") {
			t.Errorf("a datagram by %s", line)
		}
	}
	if n := drain(wire); n != 0 {
		t.Errorf("%d packets of the box are on the wire", n)
	}
}

// swallow takes what comes to port 8000.
func swallow(l *lab) {
	server, err := net.Listen("tcp4", ":8000")
	if err != nil {
		l.Error(err)
		return
	}
	l.Cleanup(func() { server.Close() })
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go io.Copy(io.Discard, c)
		}
	}()
}

// aroundChild opens a connection for each way and says whether it sent by that; when it is told to go it does so again,
// and says what becomes of datagrams.
func aroundChild(args []string) int {
	a := netip.MustParseAddrPort(args[0])
	to, _ := sockaddrOf(a)
	names := slices.Sorted(maps.Keys(ways))
	fds := map[string]int{}
	for _, name := range names {
		fds[name] = descriptor(socketOf(unix.AF_INET, unix.SOCK_STREAM, 0, true))
		err := again(func() error { return unix.Connect(fds[name], to) })
		if err == nil {
			err = ways[name](fds[name])
		}
		for left := 1; err == nil && left > 0; { // until the peer has acknowledged all of it
			left, err = unix.IoctlGetInt(fds[name], unix.SIOCOUTQ)
		}
		fmt.Printf("%s: %s\n", name, errnoWord(err))
	}
	bufio.NewReader(os.Stdin).ReadString('\n')
	for _, name := range names {
		_ = ways[name](fds[name]) // into the socket's buffer, at least
		fd := descriptor(socketOf(unix.AF_INET, unix.SOCK_DGRAM, 0, true))
		err := unix.Connect(fd, to)
		if err == nil {
			err = ways[name](fd)
		}
		fmt.Printf("%s: %s\n", name, errnoWord(err))
	}
	bufio.NewReader(os.Stdin).ReadString('\n') // what is buffered may leave until then
	return 0
}
