package nfttest

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers and sizes of linux/io_uring.h.
const (
	ringEntries = 4
	opSendmsg   = 9
	opConnect   = 16
	opSend      = 26
	opSocket    = 45
	opSendZC    = 47
	enterEvents = 1
	setupPoll   = 2 // a thread of the kernel's, of the maker's process, takes what is submitted (IORING_SETUP_SQPOLL)
	sqeFixed    = 1 // the descriptor is one that is registered with the ring
	sqeAsync    = 1 << 4
	offSQ       = 0
	offSQEs     = 0x10000000
	sizeSQE     = 64
)

// ring is a small io_uring: what it does is done by the kernel on behalf of this process.
type ring struct {
	fd   int
	p    ringParams
	with byte   // flags of what is submitted
	area []byte // both queues, one mapping (Linux 5.4)
	sqes []byte
}

type ringParams struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFD uint32
	_                                                                      [3]uint32
	sq                                                                     [10]uint32 // head, tail, mask, entries, flags, dropped, array
	cq                                                                     [10]uint32 // head, tail, mask, entries, overflow, cqes
}

// bytes are the parameters, for another process that is to open the ring.
func (p *ringParams) bytes() []byte { return (*[unsafe.Sizeof(*p)]byte)(unsafe.Pointer(p))[:] }

func newRing() (*ring, error) { return newRingOf(0) }

func newRingOf(flags uint32) (*ring, error) {
	r := &ring{p: ringParams{flags: flags}}
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, ringEntries, uintptr(unsafe.Pointer(&r.p)), 0)
	if errno != 0 {
		return nil, errno
	}
	r.fd = int(fd)
	return r, r.open()
}

// open maps the queues of a ring, which may be another process's.
func (r *ring) open() error {
	size := max(r.p.sq[6]+r.p.sqEntries*4, r.p.cq[5]+r.p.cqEntries*16)
	var err error
	if r.area, err = unix.Mmap(r.fd, offSQ, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return err
	}
	r.sqes, err = unix.Mmap(r.fd, offSQEs, int(r.p.sqEntries*sizeSQE), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	return err
}

// register makes a file the ring's own, under the number 0.
func (r *ring) register(fd int) error {
	files := [1]int32{int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), 2, uintptr(unsafe.Pointer(&files)), 1, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func (r *ring) word(offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.area[offset])) }

// do submits one operation and waits for its result, an errno below 0.
func (r *ring) do(op byte, fd int, addr unsafe.Pointer, length uint32, off uint64) unix.Errno {
	return unix.Errno(max(0, -r.result(op, fd, addr, length, off)))
}

// socket makes one, or is an errno below 0.
func (r *ring) socket(family, kind int) int32 {
	return r.result(opSocket, family, nil, 0, uint64(kind))
}

func (r *ring) result(op byte, fd int, addr unsafe.Pointer, length uint32, off uint64) int32 {
	tail := atomic.LoadUint32(r.word(r.p.sq[1]))
	index := tail & *r.word(r.p.sq[2])
	sqe := r.sqes[index*sizeSQE : (index+1)*sizeSQE]
	clear(sqe)
	sqe[0], sqe[1] = op, r.with
	*(*int32)(unsafe.Pointer(&sqe[4])) = int32(fd)
	*(*uint64)(unsafe.Pointer(&sqe[8])) = off
	*(*uint64)(unsafe.Pointer(&sqe[16])) = uint64(uintptr(addr))
	*(*uint32)(unsafe.Pointer(&sqe[24])) = length
	*r.word(r.p.sq[6] + index*4) = index
	atomic.StoreUint32(r.word(r.p.sq[1]), tail+1)
	submit := uintptr(1)
	for {
		head := atomic.LoadUint32(r.word(r.p.cq[0]))
		if head != atomic.LoadUint32(r.word(r.p.cq[1])) {
			at := r.p.cq[5] + (head&*r.word(r.p.cq[2]))*16
			res := *(*int32)(unsafe.Pointer(&r.area[at+8]))
			atomic.StoreUint32(r.word(r.p.cq[0]), head+1)
			return res
		}
		n, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), submit, 1, enterEvents|uintptr(r.p.flags&setupPoll), 0, 0) // and wake that thread: the same bit
		if errno != 0 && errno != unix.EINTR {
			return -int32(errno)
		}
		if errno == 0 {
			submit -= min(submit, n)
		}
	}
}

// connect is connect(2) by the ring.
func (r *ring) connect(fd int, to unix.Sockaddr) unix.Errno {
	raw, n := rawSockaddr(to)
	return r.do(opConnect, fd, raw, 0, uint64(n))
}

// sendTo is sendmsg(2) by the ring.
func (r *ring) sendTo(fd int, b []byte, to unix.Sockaddr) unix.Errno {
	raw, n := rawSockaddr(to)
	iov := unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	msg := &unix.Msghdr{Name: (*byte)(raw), Namelen: uint32(n), Iov: &iov, Iovlen: 1}
	return r.do(opSendmsg, fd, unsafe.Pointer(msg), 1, 0)
}

func rawSockaddr(to unix.Sockaddr) (unsafe.Pointer, int) {
	swap := func(p int) uint16 { return uint16(p)<<8 | uint16(p)>>8 } // tests run on little-endian machines
	switch a := to.(type) {
	case *unix.SockaddrInet4:
		raw := &unix.RawSockaddrInet4{Family: unix.AF_INET, Port: swap(a.Port), Addr: a.Addr}
		return unsafe.Pointer(raw), unix.SizeofSockaddrInet4
	case *unix.SockaddrInet6:
		raw := &unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: swap(a.Port), Addr: a.Addr}
		return unsafe.Pointer(raw), unix.SizeofSockaddrInet6
	}
	panic("no such address")
}
