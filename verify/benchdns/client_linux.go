package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batch is how many messages the client moves per system call.
const batch = 64

type header struct {
	unix.Msghdr
	n uint32
}

// client is a connected socket that keeps a window of queries open. It is written close to the
// system calls so that the server, not the client, is what is measured.
type client struct {
	fd       int
	queries  [][]byte
	next     int
	serial   uint32       // of the zone, as the last negative reply had it
	changed  func(uint32) // is told of another one
	out, in  [batch]header
	outV, iV [batch]unix.Iovec
	outBuf   [batch][512]byte
	inBuf    [batch][2048]byte
}

func dial(port int, queries [][]byte) (*client, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	wait := unix.NsecToTimeval((100 * time.Millisecond).Nanoseconds())
	err = errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<20),
		unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}))
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("connect to port %d: %w", port, err)
	}
	c := &client{fd: fd, queries: queries, changed: func(uint32) {}}
	for i := range batch {
		c.outV[i].Base, c.iV[i].Base = &c.outBuf[i][0], &c.inBuf[i][0]
		c.iV[i].SetLen(len(c.inBuf[i]))
		c.out[i].Iov, c.in[i].Iov = &c.outV[i], &c.iV[i]
		c.out[i].SetIovlen(1)
		c.in[i].SetIovlen(1)
	}
	return c, nil
}

func (c *client) close() { unix.Close(c.fd) }

// send asks the next n queries, each with its number in the round as id.
func (c *client) send(n int) error {
	for n > 0 {
		some := min(n, batch)
		for i := range some {
			q := c.queries[c.next%len(c.queries)]
			copy(c.outBuf[i][:], q)
			binary.BigEndian.PutUint16(c.outBuf[i][:], uint16(c.next))
			c.outV[i].SetLen(len(q))
			c.next++
		}
		for sent := 0; sent < some; {
			k, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(c.fd), uintptr(unsafe.Pointer(&c.out[sent])), uintptr(some-sent), 0, 0, 0)
			if errno != 0 && errno != unix.EINTR {
				return fmt.Errorf("sendmmsg: %w", errno)
			}
			if errno == 0 {
				sent += int(k)
			}
		}
		n -= some
	}
	return nil
}

// receive waits for replies and returns how many came, 0 after a tenth of a second without any.
func (c *client) receive() (int, error) {
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(c.fd), uintptr(unsafe.Pointer(&c.in)), batch, unix.MSG_WAITFORONE, 0, 0)
	switch errno {
	case 0:
		for i := range n {
			c.notice(c.inBuf[i][:c.in[i].n])
		}
		return int(n), nil
	case unix.EAGAIN, unix.EINTR:
		return 0, nil
	}
	return 0, fmt.Errorf("recvmmsg: %w", errno)
}

// notice looks at the serial of a negative reply: it is the first of the five numbers at the end.
func (c *client) notice(reply []byte) {
	if len(reply) > 32 && reply[7] == 0 && reply[9] == 1 {
		if serial := binary.BigEndian.Uint32(reply[len(reply)-20:]); serial != c.serial {
			c.serial = serial
			c.changed(serial)
		}
	}
}

// flood keeps window queries open for a while and returns the replies and how many were lost.
func (c *client) flood(length time.Duration, window int) (replies, lost int, err error) {
	open := 0
	for end := time.Now().Add(length); time.Now().Before(end); {
		if err := c.send(window - open); err != nil {
			return 0, 0, err
		}
		open = window
		n, err := c.receive()
		if err != nil {
			return 0, 0, err
		}
		if n == 0 {
			lost, open = lost+open, 0
			continue
		}
		replies += n
		open -= n
	}
	for open > 0 { // so that they are not the next round's
		n, err := c.receive()
		if err != nil || n == 0 {
			return replies, lost + open, err
		}
		open -= n
	}
	return replies, lost, nil
}

// single asks one query at a time and returns the times to the replies, shortest first.
func (c *client) single(count int) ([]time.Duration, error) {
	var times []time.Duration
	lost := 0
	for range count {
		began := time.Now()
		if err := c.send(1); err != nil {
			return nil, err
		}
		n, err := c.receive()
		if err != nil {
			return nil, err
		}
		if n > 0 {
			times = append(times, time.Since(began))
		} else if lost++; lost > 20 {
			return nil, errors.New("single queries: no reply to twenty of them")
		}
	}
	slices.Sort(times)
	return times, nil
}

// pin holds the calling goroutine to one core for ever.
func pin(cpu int) error {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("hold to core %d: %w", cpu, err)
	}
	return nil
}
