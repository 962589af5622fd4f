//go:build darwin || fakedarwin

package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/gominimal/minhost/darwin/boxes"
	"github.com/gominimal/minhost/darwin/loopback"
	"github.com/gominimal/minhost/installer/helper"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/lease"
)

// macTree is the boxes as the helper sees them.
type macTree struct{ *boxes.Tree }

func (t macTree) Create(id string) (helper.Leaf, error) { return macLeaf(t.Tree.Create(id)) }
func (t macTree) Open(id string) (helper.Leaf, error)   { return macLeaf(t.Tree.Open(id)) }

func macLeaf(l *boxes.Leaf, err error) (helper.Leaf, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// macRangePort gives addresses while the whole range can be bound.
type macRangePort struct {
	mu   sync.Mutex
	good time.Time // when it last could
}

// rangeAge is how long a look at all 254 addresses is believed: it takes some 2.5 ms.
const rangeAge = time.Second

// Ready implements helper.Ready.
func (p *macRangePort) Ready() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.good.IsZero() && time.Since(p.good) < rangeAge {
		return nil
	}
	unbound, cause := loopback.Unbound(loopback.Bind)
	if cause != nil {
		return fmt.Errorf("%d of %d addresses of the range are not on lo0 in this boot: %w", len(unbound), loopback.Count, cause)
	}
	p.good = time.Now()
	return nil
}

// Free implements helper.Range.
func (p *macRangePort) Free(a netip.Addr) error {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	return loopback.Free(ctx, host.Exec{}, a)
}

// macSockets makes sockets for boxes. As root, so that a box has ports below 1024 on its own address;
// no verdict hangs on who made them.
type macSockets struct{}

// Listen implements helper.Sockets.
func (macSockets) Listen(ctx context.Context, _ helper.Leaf, _ uint32, p lease.Protocol, at netip.AddrPort) (*os.File, netip.AddrPort, error) {
	var c net.ListenConfig
	if p == lease.UDP {
		conn, err := c.ListenPacket(ctx, "udp4", at.String())
		if err != nil {
			return nil, at, err
		}
		defer conn.Close()
		f, err := conn.(*net.UDPConn).File()
		return f, conn.LocalAddr().(*net.UDPAddr).AddrPort(), err
	}
	l, err := c.Listen(ctx, "tcp4", at.String())
	if err != nil {
		return nil, at, err
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	return f, l.Addr().(*net.TCPAddr).AddrPort(), err
}
