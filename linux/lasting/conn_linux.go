package lasting

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// patience ends a call whose context has no end.
const patience = 10 * time.Second

// Conn is one connection to a netlink family, in the network namespace of the thread that opens it. After an error
// it is opened again, so that a late answer never meets the next request. Who uses it takes turns.
type Conn struct {
	Family int
	nl     *netlink.Conn
}

// Open opens it before the first request does.
func (c *Conn) Open() error {
	nl, err := netlink.Dial(c.Family, nil)
	if err != nil {
		return fmt.Errorf("open netlink family %d: %w", c.Family, err)
	}
	if err := nl.SetReadBuffer(4 << 20); err != nil {
		return errors.Join(fmt.Errorf("netlink buffer: %w", err), nl.Close())
	}
	c.nl = nl
	return nil
}

// Close gives it back. A request opens it again.
func (c *Conn) Close() error {
	if c.nl == nil {
		return nil
	}
	err := c.nl.Close()
	c.nl = nil
	return err
}

// Request sends one message and returns the answers; an error is the kernel's errno where that is its answer. What
// the kernel calls an interrupted dump is taken: what it missed is found by the next look.
func (c *Conn) Request(ctx context.Context, m netlink.Message) ([]netlink.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.nl == nil {
		if err := c.Open(); err != nil {
			return nil, err
		}
	}
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(patience)
	}
	if err := c.nl.SetDeadline(end); err != nil {
		return nil, err
	}
	answers, err := c.nl.Execute(m)
	if err == nil {
		return answers, nil
	}
	var op *netlink.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	// These are the kernel's whole answer; behind others the connection may be out of step.
	if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EOPNOTSUPP) {
		c.Close()
	}
	return nil, err
}
