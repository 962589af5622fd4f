package client

import (
	"context"

	"github.com/varlink/go/varlink"
	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/api"
)

// Watch calls each for every event until each fails, the helper ends, or the context does; it
// returns that error, and nil when the helper has said its last event. The connection is used up
// by then: events that nobody wants any more may still be on it.
func (c *Client) Watch(ctx context.Context, in api.WatchIn, each func(api.Event) error) error {
	receive, done, err := c.start(ctx, "Watch", in, varlink.More, nil)
	if err != nil {
		return err
	}
	defer done()
	for {
		var out api.WatchOut
		flags, fds, err := c.receive(ctx, "Watch", receive, &out)
		closeAll(fds...)
		if err != nil {
			return err
		}
		if err := each(out.Event); err != nil {
			c.Close()
			return err
		}
		if flags&varlink.Continues == 0 {
			return nil
		}
	}
}

// Lost is closed when the connection has ended, by either side, also while no call is made. The
// first call of it starts a goroutine that ends with the connection.
func (c *Client) Lost() <-chan struct{} {
	c.watch.Do(func() {
		go func() {
			defer close(c.lost)
			raw, err := c.sock.SyscallConn()
			if err != nil {
				return
			}
			// Control does not take the right to read, which a call may need.
			_ = raw.Control(waitHangup)
		}()
	})
	return c.lost
}

// waitHangup returns when both directions of the socket are shut.
func waitHangup(fd uintptr) {
	for {
		set := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLHUP}}
		_, err := unix.Poll(set, -1)
		if err != nil && err != unix.EINTR {
			return
		}
		if set[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0 {
			return
		}
	}
}
