package nft

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Every call has an end even when its context has none.
const patience = 10 * time.Second

// Buffers of the netlink socket. A batch is one message to the kernel: 20,000 elements are 2 MB.
const (
	sendBuffer    = 16 << 20
	receiveBuffer = 4 << 20
)

// conn is one lasting connection to nfnetlink in the network namespace of the thread that opened it;
// closing one costs 10 to 20 ms. Not safe for concurrent use. After an error it dials again, so
// that answers to an abandoned request never meet the next one.
type conn struct {
	nl  *netlink.Conn
	own *os.File // that the table belongs to; nil for a socket of each connection

	mu  sync.Mutex
	ids map[uint32]bool // netlink port ids that were ours, for the watch
}

func dial(own *os.File) (*conn, error) {
	c := &conn{own: own, ids: map[uint32]bool{}}
	return c, c.open()
}

func (c *conn) open() error {
	nl, err := c.socket()
	if err != nil {
		return fmt.Errorf("open nfnetlink: %w", err)
	}
	if err := errors.Join(nl.SetWriteBuffer(sendBuffer), nl.SetReadBuffer(receiveBuffer)); err != nil {
		nl.Close()
		return fmt.Errorf("nfnetlink buffers: %w", err)
	}
	// Where the kernel says which attribute it refused.
	_ = nl.SetOption(netlink.ExtendedAcknowledge, true)
	id, err := portID(nl)
	if err != nil {
		nl.Close()
		return err
	}
	c.mu.Lock()
	c.ids[id] = true
	c.mu.Unlock()
	c.nl = nl
	return nil
}

func (c *conn) socket() (*netlink.Conn, error) {
	if c.own != nil {
		return borrow(c.own)
	}
	return netlink.Dial(unix.NETLINK_NETFILTER, nil)
}

func portID(nl *netlink.Conn) (uint32, error) {
	raw, err := nl.SyscallConn()
	if err != nil {
		return 0, err
	}
	var sa unix.Sockaddr
	var inner error
	if err := raw.Control(func(fd uintptr) { sa, inner = unix.Getsockname(int(fd)) }); err != nil || inner != nil {
		return 0, fmt.Errorf("nfnetlink port: %w", errors.Join(err, inner))
	}
	return sa.(*unix.SockaddrNetlink).Pid, nil
}

// ours says whether a netlink port id was of this connection.
func (c *conn) ours(id uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids[id]
}

func (c *conn) close() error {
	if c.nl == nil {
		return nil
	}
	err := c.nl.Close()
	c.nl = nil
	return err
}

// ready opens the connection again when an earlier error closed it, and sets the end of the call.
func (c *conn) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.nl == nil {
		if err := c.open(); err != nil {
			return err
		}
	}
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(patience)
	}
	return c.nl.SetDeadline(end)
}

// send commits a batch. Only the last message asks for an acknowledgement: one for each overflows
// the receive buffer. nil means that the kernel committed it; an error does not mean that it did
// not (ENOBUFS): read the kernel back.
func (c *conn) send(ctx context.Context, b *batch) error {
	if b.err != nil {
		return b.err
	}
	if len(b.messages) == 0 {
		return nil
	}
	if err := c.ready(ctx); err != nil {
		return err
	}
	edge := func(t uint16) netlink.Message {
		return netlink.Message{
			Header: netlink.Header{Type: netlink.HeaderType(t), Flags: netlink.Request},
			Data:   genHeader(unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES),
		}
	}
	all := append([]netlink.Message{edge(unix.NFNL_MSG_BATCH_BEGIN)}, b.messages...)
	all[len(all)-1].Header.Flags |= netlink.Acknowledge
	all = append(all, edge(unix.NFNL_MSG_BATCH_END))
	if _, err := c.nl.SendMessages(all); err != nil {
		c.close()
		return cause(err)
	}
	// The kernel works inside of the call that sends, and nothing ends it: the first batch after a boot
	// loads a dozen modules there (13 s on an emulated processor). The answer waits by now, however late.
	if err := c.nl.SetReadDeadline(time.Now().Add(patience)); err != nil {
		c.close()
		return cause(err)
	}
	if _, err := c.nl.Receive(); err != nil {
		c.close()
		return cause(err)
	}
	return nil
}

// request sends one message outside a batch and returns the answers. A dump that a commit interrupted
// is asked for again.
func (c *conn) request(ctx context.Context, m netlink.Message) ([]netlink.Message, error) {
	for range 20 {
		if err := c.ready(ctx); err != nil {
			return nil, err
		}
		answers, err := c.nl.Execute(m)
		switch {
		case errors.Is(err, unix.ENOENT): // the whole answer; the connection is in order
			return nil, cause(err)
		case err != nil:
			c.close()
			return nil, cause(err)
		}
		if !interrupted(answers) {
			return answers, nil
		}
	}
	return nil, errors.New("the ruleset changed during each of 20 listings")
}

func interrupted(answers []netlink.Message) bool {
	for _, a := range answers {
		if a.Header.Flags&netlink.DumpInterrupted != 0 {
			return true
		}
	}
	return false
}

// cause takes the errno out of what the netlink library says, and names a missed deadline.
func cause(err error) error {
	var op *netlink.OpError
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("no answer from the kernel: %w", context.DeadlineExceeded)
	}
	if errors.As(err, &op) {
		if op.Message != "" {
			return fmt.Errorf("%s: %w", op.Message, op.Err)
		}
		return op.Err
	}
	return err
}
