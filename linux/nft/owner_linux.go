package nft

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Flags of a table (linux/netfilter/nf_tables.h). One that is owned is changed and removed over the socket that made
// it only: a flush of everything by somebody else passes it by. It ends with that socket, unless it persists.
const (
	flagOwner   = 1 << 1 // NFT_TABLE_F_OWNER, Linux 5.12
	flagPersist = 1 << 2 // NFT_TABLE_F_PERSIST, Linux 6.9
)

// OwnerSocket makes a socket that a table can belong to. While any process holds it the table stays.
func OwnerSocket() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open nfnetlink: %w", err)
	}
	f := os.NewFile(uintptr(fd), "table")
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, errors.Join(fmt.Errorf("bind nfnetlink: %w", err), f.Close())
	}
	return f, nil
}

// NewOwner is New for the process that owns the table over this socket, which stays the caller's and may have been
// used before. A table that is not ours yet is made again with its first Refill, or taken over when its owner ended
// and it persisted.
func NewOwner(ctx context.Context, c Config, owner *os.File, log *slog.Logger) (*Table, error) {
	c.flags = flagOwner
	if persistent(ctx) {
		c.flags |= flagPersist
	}
	return open(c, owner, log)
}

// persistent tries whether tables can outlive their owner.
func persistent(ctx context.Context) bool {
	return apart(func() error {
		c, err := dial(nil)
		if err != nil {
			return err
		}
		defer c.close()
		var b batch
		b.addTable(flagOwner | flagPersist)
		return c.send(ctx, &b)
	}) == nil
}

// Owned says whether the table belongs to a socket, and whether it would outlive that. It only reads.
func (t *Table) Owned(ctx context.Context) (owned, persists bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	flags, _, err := t.conn.tableFlags(ctx)
	return flags&flagOwner != 0, flags&flagPersist != 0, err
}

func (b *batch) addTable(flags uint32) {
	var attrs []netlink.Attribute
	if flags != 0 {
		attrs = append(attrs, attr(unix.NFTA_TABLE_FLAGS, be32(flags)))
	}
	b.put(unix.NFT_MSG_NEWTABLE, netlink.Create, attrs...)
}

// tableFlags are those that the table has, if there is one.
func (c *conn) tableFlags(ctx context.Context) (flags uint32, present bool, err error) {
	err = c.get(ctx, unix.NFT_MSG_GETTABLE, 0, func(data []byte) error {
		return attributes(data, func(t uint16, v []byte) error {
			if t == unix.NFTA_TABLE_FLAGS {
				flags = num(v)
			}
			return nil
		})
	})
	if errors.Is(err, unix.ENOENT) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("look for table inet %s: %w", tableName, err)
	}
	return flags, true, nil
}

// owned is a netlink.Socket on a socket that lives on when the connection is given up.
type owned struct{ *os.File }

// borrow duplicates the socket and takes what an earlier user left unread.
func borrow(owner *os.File) (*netlink.Conn, error) {
	raw, err := owner.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	var inner error
	err = raw.Control(func(original uintptr) {
		fd, inner = unix.FcntlInt(original, unix.F_DUPFD_CLOEXEC, 0)
		if inner == nil {
			inner = unix.SetNonblock(fd, true) // a descriptor that came from outside may not be
		}
	})
	if err := errors.Join(err, inner); err != nil {
		return nil, fmt.Errorf("owner of the table: %w", err)
	}
	var some [1]byte
	for err == nil {
		_, _, err = unix.Recvfrom(fd, some[:], unix.MSG_TRUNC)
		if errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.EINTR) {
			err = nil
		}
	}
	s := owned{os.NewFile(uintptr(fd), "table")}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("owner of the table: %w", err), s.Close())
	}
	at, ok := sa.(*unix.SockaddrNetlink)
	if !ok {
		return nil, errors.Join(errors.New("owner of the table: no netlink socket"), s.Close())
	}
	return netlink.NewConn(s, at.Pid), nil
}

// Send implements netlink.Socket.
func (s owned) Send(m netlink.Message) error { return s.SendMessages([]netlink.Message{m}) }

// SendMessages sends all as one.
func (s owned) SendMessages(all []netlink.Message) error {
	var data []byte
	for _, m := range all {
		b, err := m.MarshalBinary()
		if err != nil {
			return err
		}
		data = append(data, b...)
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Write(func(fd uintptr) bool {
		sent = unix.Sendto(int(fd), data, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		return !errors.Is(sent, unix.EAGAIN)
	})
	return errors.Join(err, sent)
}

// Receive reads one datagram whole.
func (s owned) Receive() ([]netlink.Message, error) {
	raw, err := s.SyscallConn()
	if err != nil {
		return nil, err
	}
	var data []byte
	var got error
	err = raw.Read(func(fd uintptr) bool {
		n := 0
		if n, _, got = unix.Recvfrom(int(fd), nil, unix.MSG_PEEK|unix.MSG_TRUNC); got == nil {
			data = make([]byte, n)
			_, _, got = unix.Recvfrom(int(fd), data, 0)
		}
		return !errors.Is(got, unix.EAGAIN) && !errors.Is(got, unix.EINTR)
	})
	if err := errors.Join(err, got); err != nil {
		return nil, err
	}
	parts, err := syscall.ParseNetlinkMessage(data)
	if err != nil {
		return nil, err
	}
	out := make([]netlink.Message, 0, len(parts))
	for _, p := range parts {
		out = append(out, netlink.Message{Data: p.Data, Header: netlink.Header{Length: p.Header.Len,
			Type: netlink.HeaderType(p.Header.Type), Flags: netlink.HeaderFlags(p.Header.Flags), Sequence: p.Header.Seq, PID: p.Header.Pid}})
	}
	return out, nil
}

// SetReadBuffer and SetWriteBuffer are as of a connection that the library made.
func (s owned) SetReadBuffer(n int) error  { return s.buffer(unix.SO_RCVBUFFORCE, n) }
func (s owned) SetWriteBuffer(n int) error { return s.buffer(unix.SO_SNDBUFFORCE, n) }

func (s owned) buffer(option, n int) error {
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	return errors.Join(raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option, n) }), set)
}
