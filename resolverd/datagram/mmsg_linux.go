package datagram

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
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
// It waits in poll(2) and not in Go's poller, which takes a try in vain, a change of goroutines and
// an epoll_wait(2) for each batch: a tenth of what a query costs when they come one by one.
type mmsg struct {
	raw      syscall.RawConn
	in, out  [Many]header
	inVec    [Many]unix.Iovec
	outVec   [Many]unix.Iovec
	names    [Many][nameSize]byte
	controls [Many][controlSize]byte
	spaces   [Many][512]byte
	messages [Many]Message
	fds      [2]unix.PollFd
	marks    bool

	mu      sync.Mutex
	stopped int // an eventfd, -1 when closed

	// receive and send are methods as function values, made once: one made for each call would
	// be an allocation for each. What they are told and what they find is below.
	receive  func(fd uintptr)
	send     func(fd uintptr) bool
	from, to int
	done     int
	errno    syscall.Errno
}

// New returns the best batch that the system has. With marks it asks for the packets' marks where
// it may: since 6.3 (and in older stable kernels) SO_RCVMARK, new in 5.19, takes CAP_NET_RAW or
// CAP_NET_ADMIN; a socket that was handed over may have it set already.
func New(conn *net.UDPConn, marks bool) (Batch, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", conn.LocalAddr(), err)
	}
	b := &mmsg{raw: raw, marks: marks}
	if b.stopped, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	if marks {
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVMARK, 1) })
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
		b.out[i].Name, b.out[i].Iov = &b.names[i][0], &b.outVec[i]
		b.out[i].SetIovlen(1)
	}
	b.fds[1] = unix.PollFd{Fd: int32(b.stopped), Events: unix.POLLIN}
	b.receive, b.send, b.done = b.recvmmsg, b.sendmmsg, Many
	return b, nil
}

func (b *mmsg) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped >= 0 {
		_, _ = unix.Write(b.stopped, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

func (b *mmsg) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped >= 0 {
		unix.Close(b.stopped)
		b.stopped = -1
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
	last := b.done
	b.done, b.errno = 0, 0
	// A batch that was not full emptied the queue, so there is nothing to try for.
	b.fds[0].Revents = unix.POLLIN
	if last < Many {
		b.fds[0].Revents = 0
	}
	switch err := b.raw.Control(b.receive); {
	case err != nil:
		return nil, err
	case b.errno != 0:
		return nil, os.NewSyscallError("recvmmsg", b.errno)
	case b.done == 0:
		return nil, ErrStopped
	}
	return b.unpack()
}

// recvmmsg returns with messages, with an error, or with neither when it was stopped.
func (b *mmsg) recvmmsg(fd uintptr) {
	b.fds[0].Fd, b.fds[0].Events = int32(fd), unix.POLLIN
	for {
		if b.fds[0].Revents == 0 {
			if _, err := unix.Ppoll(b.fds[:], nil, nil); err != nil && err != unix.EINTR {
				b.errno = err.(syscall.Errno)
				return
			}
			if b.fds[1].Revents != 0 {
				return
			}
		}
		n, _, errno := syscall.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&b.in)), Many, unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			b.done = int(n)
			return
		case unix.EAGAIN:
			b.fds[0].Revents = 0
		case unix.EINTR:
		default:
			b.errno = errno
			return
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
	b.from, b.to = 0, 0
	for i := range b.done {
		if m := &b.messages[i]; len(m.Reply) > 0 {
			b.outVec[b.to].Base = &m.Reply[0]
			b.outVec[b.to].SetLen(len(m.Reply))
			b.out[b.to].Name, b.out[b.to].Namelen = &b.names[i][0], b.in[i].Namelen
			b.to++
		}
	}
	var last error
	for b.from < b.to {
		err := b.raw.Write(b.send)
		if err != nil {
			return err
		}
		if b.errno != 0 {
			last = os.NewSyscallError("sendmmsg", b.errno)
			b.from++ // the first of the rest is the one that failed
		}
	}
	return last
}

func (b *mmsg) sendmmsg(fd uintptr) bool {
	for b.from < b.to {
		n, _, errno := syscall.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&b.out[b.from])), uintptr(b.to-b.from), unix.MSG_DONTWAIT, 0, 0)
		b.errno = 0
		switch {
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			return false
		case errno != 0:
			b.errno = errno
			return true
		default:
			b.from += int(n)
		}
	}
	return true
}
