//go:build darwin || fakedarwin

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/gominimal/minhost/darwin/boxes"
	"github.com/gominimal/minhost/darwin/loopback"
	"github.com/gominimal/minhost/darwin/procs"
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

// macProcesses opens processes by pid and start time.
type macProcesses struct {
	table procs.Table
	pidOf func(*os.File) (int, error)
}

func (p macProcesses) Open(pid int) (helper.Process, error) {
	i, err := p.table.Info(pid)
	if err != nil {
		return nil, err
	}
	return macProcess{p.table, i}, nil
}

func (p macProcesses) FromFD(f *os.File) (helper.Process, error) {
	if p.pidOf == nil {
		return nil, errors.New("macOS has no descriptors of processes: give the pid")
	}
	pid, err := p.pidOf(f)
	if err != nil {
		return nil, err
	}
	return p.Open(pid)
}

// macProcess is one of them.
type macProcess struct {
	table procs.Table
	procs.Info
}

func (p macProcess) PID() int { return p.Info.PID }

// Alive implements helper.Process; in doubt it is dead.
func (p macProcess) Alive() bool {
	same, err := procs.Same(p.table, p.Info.PID, p.Start)
	return same && err == nil
}

// Fit implements helper.Process. Sockets and children do not count here: no verdict hangs on them.
func (p macProcess) Fit(uid uint32, anyUID bool) error {
	i, err := p.table.Info(p.Info.PID)
	if err != nil {
		return err
	}
	if !anyUID && i.UIDs != [3]uint32{uid, uid, uid} {
		return &helper.Unfit{Reason: "uid", Text: fmt.Sprintf("its user ids are not all %d", uid)}
	}
	return nil
}

func (macProcess) Childless() (bool, error) { return true, nil }
func (macProcess) Children() ([]int, error) { return nil, nil }
func (macProcess) Close() error             { return nil }

// Pin has nothing to hold: the start time, read again, tells a number that another process has.
func (macProcess) Pin() (func(), error) { return func() {}, nil }

func (p macProcess) Kill() error {
	if !p.Alive() {
		return fmt.Errorf("process %d: %w", p.Info.PID, fs.ErrNotExist)
	}
	return syscall.Kill(p.Info.PID, syscall.SIGKILL)
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
