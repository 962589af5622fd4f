package client

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/varlink/go/varlink"

	"github.com/gominimal/minhost/installer/api"
)

// Client is one connection to the helper. Its methods may be called by several goroutines; one
// call waits for the other. After Close, or a call whose context ended, all fail with a Failure.
type Client struct {
	path string
	sock *net.UnixConn
	conn *varlink.Connection
	turn chan struct{} // holds one value while a call is on the wire

	closing sync.Once
	watch   sync.Once
	lost    chan struct{}
}

// Dial connects to the helper's socket. The context bounds the connecting only. The error is a
// *Failure.
func Dial(ctx context.Context, socketPath string) (*Client, error) {
	d := &keeping{}
	// What follows a semicolon is not part of a varlink address.
	if strings.Contains(socketPath, ";") {
		return nil, dialFailure(socketPath, errors.New("the path has a semicolon"))
	}
	conn, err := varlink.NewConnectionWithDialer(ctx, "unix:"+socketPath, d)
	if err != nil {
		return nil, dialFailure(socketPath, err)
	}
	sock, ok := d.conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return nil, dialFailure(socketPath, errors.New("not a unix socket"))
	}
	return &Client{
		path: socketPath, sock: sock, conn: conn,
		turn: make(chan struct{}, 1), lost: make(chan struct{}),
	}, nil
}

// keeping remembers the connection that it dialled: the library does not give it out.
type keeping struct {
	net.Dialer
	conn net.Conn
}

func (k *keeping) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := k.Dialer.DialContext(ctx, network, address)
	k.conn = conn
	return conn, err
}

// Close ends the connection, and a call that is under way with it. What it planned is abandoned
// by the helper; what it attached with end_with_connection is ended.
func (c *Client) Close() error {
	c.closing.Do(func() {
		// Shut down first: the helper sees the end at once, even while Lost still holds the
		// descriptor in a system call.
		c.sock.CloseWrite()
		c.sock.CloseRead()
		c.sock.Close()
		go func() { // descriptors that came with half a reply
			c.turn <- struct{}{}
			c.conn.Close()
			<-c.turn
		}()
	})
	return nil
}

// call makes one call with one reply, which carries no descriptor.
func (c *Client) call(ctx context.Context, method string, in, out any, fds ...*os.File) error {
	f, err := c.callForFile(ctx, method, in, out, fds...)
	closeAll(f)
	return err
}

// callForFile makes one call whose reply may carry a descriptor: nil when it carries none.
func (c *Client) callForFile(ctx context.Context, method string, in, out any, fds ...*os.File) (*os.File, error) {
	receive, done, err := c.start(ctx, method, in, 0, fds)
	if err != nil {
		return nil, err
	}
	defer done()
	_, got, err := c.receive(ctx, method, receive, out)
	if err != nil || len(got) == 0 {
		closeAll(got...)
		return nil, err
	}
	closeAll(got[1:]...)
	return got[0], nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

type receiver func(ctx context.Context, out any) (flags uint64, fds []*os.File, err error)

// start waits for its turn and sends a call. done gives the turn to the next.
func (c *Client) start(ctx context.Context, method string, in any, flags uint64, fds []*os.File) (_ receiver, done func(), err error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, callFailure(method, ctx.Err())
	}
	done = func() { <-c.turn }
	receive, err := c.conn.SendWithFDs(ctx, api.Interface+"."+method, in, flags, fds)
	if err != nil {
		if last := c.parting(ctx); last != nil {
			err = last
		}
		done()
		c.Close()
		return nil, nil, callFailure(method, err)
	}
	return receive, done, nil
}

// receive reads one reply. The descriptors are the caller's, also behind an error. A reply that cannot be
// read ends the connection.
func (c *Client) receive(ctx context.Context, method string, receive receiver, out any) (flags uint64, fds []*os.File, err error) {
	flags, fds, err = receive(ctx, out)
	if err == nil {
		return flags, fds, nil
	}
	if answered, known := reply(err); known {
		return 0, fds, c.older(ctx, method, answered)
	}
	c.Close()
	return 0, fds, callFailure(method, err)
}
