package helper

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of one connection. They hold before anything of a message is decoded.
const (
	maxMessage = 64 << 10
	maxFDs     = 4
	maxWaiting = 8 // calls that wait while one runs
)

var (
	errTooLarge = errors.New("message too large")
	errTooMany  = errors.New("too many calls or descriptors at once")
)

// message is one call as it came.
type message struct {
	raw []byte // without the NUL
	fds []*os.File
}

func (m message) close() {
	for _, f := range m.fds {
		f.Close()
	}
}

// conn is one connection. It implements the library's ReadWriterContext and FDReadWriter; only
// writing is used, since conn itself reads.
type conn struct {
	uc      *net.UnixConn
	peer    Peer
	account account
	ctx     context.Context
	cancel  context.CancelFunc
	writing sync.Mutex
	// message bounds a message from its first octet to its last, and the write of a reply.
	message time.Duration
	// idle is how long the peer may be silent while busy says no.
	idle time.Duration
	busy func() bool
}

func (c *conn) Write(_ context.Context, b []byte) (int, error) { return c.WriteWithFDs(c.ctx, b, nil) }

// WriteWithFDs writes one reply. A reader that does not read in time loses the connection.
func (c *conn) WriteWithFDs(_ context.Context, b []byte, fds []*os.File) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.uc.SetWriteDeadline(time.Now().Add(c.message))
	var rights []byte
	if len(fds) > 0 {
		var list []int
		for _, f := range fds {
			list = append(list, int(f.Fd()))
		}
		rights = unix.UnixRights(list...)
	}
	n, _, err := c.uc.WriteMsgUnix(b, rights, nil)
	if err == nil && n < len(b) {
		var more int
		more, err = c.uc.Write(b[n:])
		n += more
	}
	if err != nil {
		c.cancel()
	}
	return n, err
}

func (c *conn) Read(context.Context, []byte) (int, error)       { return 0, errors.ErrUnsupported }
func (c *conn) ReadBytes(context.Context, byte) ([]byte, error) { return nil, errors.ErrUnsupported }
func (c *conn) ReadBytesWithFDs(context.Context, byte) ([]byte, []*os.File, error) {
	return nil, nil, errors.ErrUnsupported
}

// read delivers messages until the peer closes, breaks a bound, or the context ends. It goes on
// reading while a call runs, so that the end of the connection is seen at once.
func (c *conn) read(deliver func(message) error) error {
	var buf []byte
	var fds []*os.File
	defer func() { message{fds: fds}.close() }()
	var deadline time.Time
	chunk, oob := make([]byte, 8<<10), make([]byte, unix.CmsgSpace(4*maxFDs))
	for {
		if len(buf) == 0 {
			deadline = time.Now().Add(c.idle)
		}
		c.uc.SetReadDeadline(deadline)
		n, oobn, flags, _, err := c.uc.ReadMsgUnix(chunk, oob)
		got, ferr := files(oob[:oobn])
		fds = append(fds, got...)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && len(buf) == 0 && c.busy():
			continue
		case err != nil:
			return err
		case n == 0:
			return io.EOF
		case ferr != nil || flags&unix.MSG_CTRUNC != 0 || len(fds) > maxFDs:
			return errTooMany
		}
		if len(buf) == 0 { // of a message, not of an octet: one that trickles is as slow
			deadline = time.Now().Add(c.message)
		}
		buf = append(buf, chunk[:n]...)
		for {
			end := bytes.IndexByte(buf, 0)
			if end > maxMessage || end < 0 && len(buf) > maxMessage {
				return errTooLarge
			}
			if end < 0 {
				break
			}
			m := message{raw: bytes.Clone(buf[:end])}
			buf = buf[end+1:]
			// The kernel ends a read behind the octets that carried descriptors, so they belong
			// to the last message that is complete now (unix(7), SCM_RIGHTS).
			if bytes.IndexByte(buf, 0) < 0 && len(buf) == 0 {
				m.fds, fds = fds, nil
			}
			if err := deliver(m); err != nil {
				m.close()
				return err
			}
			deadline = time.Now().Add(c.message) // what is left began with this read
		}
	}
}

// files takes the descriptors out of a control message. ReadMsgUnix sets close-on-exec.
func files(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	controls, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var all []*os.File
	for _, m := range controls {
		if m.Header.Level != syscall.SOL_SOCKET || m.Header.Type != syscall.SCM_RIGHTS {
			continue
		}
		list, err := unix.ParseUnixRights(&m)
		if err != nil {
			return all, err
		}
		for _, fd := range list {
			all = append(all, os.NewFile(uintptr(fd), "received"))
		}
	}
	return all, nil
}

// discard ends a connection whose peer may still be writing: the reply gets out, the rest of what
// the peer sends is read and dropped for a short while, so that it can finish its write and read.
func (c *conn) discard() {
	c.uc.CloseWrite()
	c.uc.SetReadDeadline(time.Now().Add(2 * time.Second))
	io.CopyN(io.Discard, c.uc, 64<<20)
}
