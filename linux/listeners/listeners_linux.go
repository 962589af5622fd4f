package listeners

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/linux/sockdiag"
)

// Socket waits for peers. A wildcard address is 0.0.0.0 or ::.
type Socket struct {
	UDP    bool
	Local  netip.AddrPort
	Cgroup uint64 // 0 when the kernel does not tell it
}

// Lister asks the kernel. Its methods may be called concurrently.
type Lister struct{ diag *sockdiag.Conn }

// New opens the connection. With an error it can be used all the same: the next question opens it.
func New() (*Lister, error) {
	c, err := sockdiag.Open()
	return &Lister{c}, err
}

// Close gives the connection back.
func (l *Lister) Close() error { return l.diag.Close() }

// List returns the sockets that wait now, in the kernel's order. A port that a UDP client was given by
// the kernel is not told from a server's here.
func (l *Lister) List(ctx context.Context) ([]Socket, error) {
	all, err := l.diag.List(ctx, sockdiag.Listen, sockdiag.Closed)
	if err != nil && !errors.Is(err, sockdiag.ErrNotTold) {
		return nil, err
	}
	var out []Socket
	for _, s := range all {
		if s.Local.Port() != 0 {
			out = append(out, Socket{s.Protocol == unix.IPPROTO_UDP, s.Local, s.Cgroup})
		}
	}
	return out, nil
}

// ClientPorts is the range that the kernel gives ports to clients from (ip(7), ip_local_port_range).
func ClientPorts() (first, last uint16, err error) {
	const file = "/proc/sys/net/ipv4/ip_local_port_range"
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, fmt.Errorf("client ports: %w", err)
	}
	if _, err := fmt.Sscan(string(b), &first, &last); err != nil {
		return 0, 0, fmt.Errorf("client ports: %s: %w", file, err)
	}
	return first, last, nil
}
