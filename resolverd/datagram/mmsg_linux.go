//go:build !fakedarwin

package datagram

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// header is struct mmsghdr of recvmmsg(2).
type header struct {
	unix.Msghdr
	n uint32
}

// nameSize holds a sockaddr of either family, controlSize one control message of four octets.
const (
	nameSize    = unix.SizeofSockaddrInet6
	controlSize = 24
)

// mmsg is a batch by recvmmsg(2) and sendmmsg(2). Their Go wrappers (golang.org/x/net) make an
// address of each message, in two allocations; here the kernel's own form of it goes back to it.
//
// The socket is taken out of Go's poller and waited for in poll(2). In the poller every datagram
// that arrives wakes a thread that finds nobody waiting: with two processors that was a third of
// what a query costs, and a single query took a try in vain and two changes of goroutines.
type mmsg struct {
	fd       int
	in, out  [Many]header
	inVec    [Many]unix.Iovec
	outVec   [Many]unix.Iovec
	names    [Many][nameSize]byte
	controls [Many][controlSize]byte
	spaces   [Many][512]byte
	messages [Many]Message
	done     int  // messages of the last Read
	marks    bool // are asked for

	ended   atomic.Bool // for a Read that need not wait
	mu      sync.Mutex
	stopped int // an eventfd, for one that waits; -1 when closed
}

// New returns the best batch that the system has. It takes the socket over: conn is closed, and
// Close of the batch closes the socket. With marks it asks for the packets' marks where it may:
// since 6.3 (and in older stable kernels) SO_RCVMARK, new in 5.19, takes CAP_NET_RAW or
// CAP_NET_ADMIN; a socket that was handed over may have it set already.
func New(conn *net.UDPConn, marks bool) (Batch, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	b := &mmsg{marks: marks, done: Many}
	var dupErr error
	err = raw.Control(func(fd uintptr) { b.fd, dupErr = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err := errors.Join(err, dupErr); err != nil {
		return nil, fmt.Errorf("take over: %w", err)
	}
	conn.Close()
	if b.stopped, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(b.fd)
		return nil, os.NewSyscallError("eventfd", err)
	}
	if marks {
		_ = unix.SetsockoptInt(b.fd, unix.SOL_SOCKET, unix.SO_RCVMARK, 1)
	}
	data := make([]byte, longest+(Many-1)*room)
	for i := range Many {
		size := room
		if i == 0 {
			size = longest
		}
		b.messages[i] = Message{Space: &b.spaces[i], buf: data[:size:size]}
		data = data[size:]
		b.inVec[i].Base = &b.messages[i].buf[0]
		b.inVec[i].SetLen(size)
		b.in[i].Name, b.in[i].Iov = &b.names[i][0], &b.inVec[i]
		b.in[i].SetIovlen(1)
		b.out[i].Iov = &b.outVec[i]
		b.out[i].SetIovlen(1)
	}
	return b, nil
}

func (b *mmsg) Stop() {
	b.ended.Store(true)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped >= 0 {
		_, _ = unix.Write(b.stopped, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

func (b *mmsg) Poke() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped < 0 {
		return nil
	}
	self, err := unix.Getsockname(b.fd)
	if err != nil {
		return os.NewSyscallError("getsockname", err)
	}
	return os.NewSyscallError("sendto", unix.Sendto(b.fd, nil, unix.MSG_DONTWAIT, self))
}

func (b *mmsg) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped >= 0 {
		unix.Close(b.stopped)
		unix.Close(b.fd)
		b.stopped = -1
	}
}

// wait returns when the socket is ready for events, or ErrStopped.
func (b *mmsg) wait(events int16) error {
	fds := [2]unix.PollFd{{Fd: int32(b.fd), Events: events}, {Fd: int32(b.stopped), Events: unix.POLLIN}}
	for {
		_, err := unix.Ppoll(fds[:], nil, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return os.NewSyscallError("poll", err)
		case fds[1].Revents != 0:
			return ErrStopped
		default:
			return nil
		}
	}
}

func (b *mmsg) Read() ([]Message, error) {
	for i := range b.done { // what the kernel changed in the last call
		b.in[i].Namelen = nameSize
		if b.marks {
			b.in[i].Control = &b.controls[i][0]
			b.in[i].SetControllen(controlSize)
		}
	}
	// A batch that was not full emptied the queue, so there is nothing to try for.
	ready := b.done == Many
	b.done = 0
	for {
		if b.ended.Load() {
			return nil, ErrStopped
		}
		if !ready {
			if err := b.wait(unix.POLLIN); err != nil {
				return nil, err
			}
		}
		// Raw: the call never waits, and the scheduler would take the processor from under one that
		// lasts longer than 20 us, which a full batch does.
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(b.fd), uintptr(unsafe.Pointer(&b.in)), Many, unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			b.done = int(n)
			return b.unpack()
		case unix.EAGAIN:
			ready = false
		case unix.EINTR:
		default:
			return nil, os.NewSyscallError("recvmmsg", errno)
		}
	}
}

// unpack makes messages of what arrived. One that was cut has no octets: it would be mistaken for a
// broken one.
func (b *mmsg) unpack() ([]Message, error) {
	var err error
	for i := range b.done {
		m, h := &b.messages[i], &b.in[i]
		m.Data, m.Reply = m.buf[:h.n], nil
		if h.Flags&unix.MSG_TRUNC != 0 {
			m.Data, err = nil, ErrLost
		}
		m.From, m.Mark = address(&b.names[i]), 0
		if b.marks {
			m.Mark = mark(b.controls[i][:h.Controllen])
		}
	}
	return b.messages[:b.done], err
}

// address reads a sockaddr. The zone of a link-local address is left out: who is on this host is
// told by the address alone.
func address(name *[nameSize]byte) netip.AddrPort {
	port := binary.BigEndian.Uint16(name[2:])
	switch binary.NativeEndian.Uint16(name[:]) {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(name[4:8])), port)
	case unix.AF_INET6:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(name[8:24])), port)
	}
	return netip.AddrPort{}
}

// mark reads the one control message that the socket was asked for.
func mark(control []byte) uint32 {
	if len(control) < unix.CmsgLen(4) {
		return 0
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	if h.Level != unix.SOL_SOCKET || h.Type != unix.SO_MARK {
		return 0
	}
	return binary.NativeEndian.Uint32(control[unix.CmsgLen(0):])
}

func (b *mmsg) Write() error {
	all := 0
	for i := range b.done {
		if m := &b.messages[i]; len(m.Reply) > 0 {
			b.outVec[all].Base = &m.Reply[0]
			b.outVec[all].SetLen(len(m.Reply))
			b.out[all].Name, b.out[all].Namelen = &b.names[i][0], b.in[i].Namelen
			all++
		}
	}
	var last error
	for sent := 0; sent < all; {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(b.fd), uintptr(unsafe.Pointer(&b.out[sent])), uintptr(all-sent), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			sent += int(n)
		case unix.EINTR:
		case unix.EAGAIN:
			if err := b.wait(unix.POLLOUT); err != nil {
				return err
			}
		default:
			last = os.NewSyscallError("sendmmsg", errno)
			sent++ // the first of the rest is the one that failed
		}
	}
	return last
}
