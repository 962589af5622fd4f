package datagram

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
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
type mmsg struct {
	raw      syscall.RawConn
	in, out  [Many]header
	vectors  [Many][2]unix.Iovec // of in
	replies  [Many]unix.Iovec    // of out
	names    [Many][nameSize]byte
	controls [Many][controlSize]byte
	spaces   [Many][512]byte
	data     []byte // Many times room, then the overflow
	whole    []byte // a message that is longer than room, put together; nil until there was one
	messages [Many]Message

	// The arguments and results of receive and send. They are functions made once, for a closure
	// made for each call would be an allocation for each call.
	receive, send func(fd uintptr) bool
	from, to      int
	done          int
	errno         syscall.Errno
}

// New returns the best batch that the system has. It asks for the packets' marks where it may:
// since 6.3 (and in older stable kernels) SO_RCVMARK, new in 5.19, takes CAP_NET_RAW or
// CAP_NET_ADMIN; a socket that was handed over may have it set already.
func New(conn *net.UDPConn) (Batch, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", conn.LocalAddr(), err)
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVMARK, 1) })
	b := &mmsg{raw: raw, data: make([]byte, Many*room+overflow)}
	rest := &b.data[Many*room]
	for i := range Many {
		b.vectors[i][0].Base = &b.data[i*room]
		b.vectors[i][0].SetLen(room)
		b.vectors[i][1].Base = rest
		b.vectors[i][1].SetLen(overflow)
		in := &b.in[i]
		in.Name, in.Iov, in.Control = &b.names[i][0], &b.vectors[i][0], &b.controls[i][0]
		in.SetIovlen(2)
		in.Namelen = nameSize
		in.SetControllen(controlSize)
		b.out[i].Iov = &b.replies[i]
		b.out[i].SetIovlen(1)
		b.messages[i].Space = &b.spaces[i]
	}
	b.receive, b.send = b.recvmmsg, b.sendmmsg
	return b, nil
}

func (b *mmsg) Read() ([]Message, error) {
	for i := range b.done { // what the kernel changed in the last call
		b.in[i].Namelen = nameSize
		b.in[i].SetControllen(controlSize)
	}
	b.done = 0
	switch err := b.raw.Read(b.receive); {
	case err != nil:
		return nil, err
	case b.errno != 0:
		return nil, os.NewSyscallError("recvmmsg", b.errno)
	}
	return b.unpack()
}

func (b *mmsg) recvmmsg(fd uintptr) bool {
	for {
		n, _, errno := syscall.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&b.in)), Many, unix.MSG_DONTWAIT, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if b.errno = errno; errno == 0 {
			b.done = int(n)
		}
		return errno != unix.EAGAIN
	}
}

// unpack makes messages of what arrived. Of those that went into the overflow only the last has
// its own octets there; the others are dropped, to be asked again.
func (b *mmsg) unpack() ([]Message, error) {
	long := -1
	var err error
	for i := range b.done {
		if b.in[i].n > room {
			if long >= 0 {
				b.messages[long].Data = nil
				err = ErrLost
			}
			long = i
		}
		m, n := &b.messages[i], int(b.in[i].n)
		m.Data, m.Reply = b.data[i*room:i*room+min(n, room)], nil
		m.From, m.Mark = address(&b.names[i]), mark(b.controls[i][:b.in[i].Controllen])
	}
	if long >= 0 {
		if b.whole == nil {
			b.whole = make([]byte, room+overflow)
		}
		copy(b.whole, b.messages[long].Data)
		copy(b.whole[room:], b.data[Many*room:])
		b.messages[long].Data = b.whole[:b.in[long].n]
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
			b.replies[b.to].Base = &m.Reply[0]
			b.replies[b.to].SetLen(len(m.Reply))
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
