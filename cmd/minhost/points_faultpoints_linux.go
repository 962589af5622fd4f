//go:build faultpoints

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"

	"github.com/gominimal/minhost/installer/helper"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/lease"
)

// helperGate asks whoever listens on <run>/fault.sock before every change of the host that the helper
// makes: one line with the change, one line back. "exit" ends the helper as kill -9 does, "fail" has the
// change fail, anything else, and nobody there, lets it through; until the answer comes it waits. Never part
// of a release.
func helperGate(run string) host.Gate {
	return func(change string) error {
		c, err := net.Dial("unix", run+"/fault.sock")
		if err != nil {
			return nil
		}
		defer c.Close()
		fmt.Fprintln(c, change)
		answer, _ := bufio.NewReader(c).ReadString('\n')
		switch strings.TrimSpace(answer) {
		case "exit":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case "fail":
			return fmt.Errorf("%s: %w", change, errors.New("the test has it fail"))
		}
		return nil
	}
}

// withPoints puts the gate before the changes that no file and no cgroup makes, and before what the helper
// says behind the last one of a call.
func withPoints(c helper.Config, g host.Gate) helper.Config {
	if c.Table != nil {
		c.Table, c.Flows = pointsTable{c.Table, g}, pointsFlows{c.Flows, g}
	}
	if c.Localhost != nil {
		c.Localhost = pointsLocalhost{c.Localhost, g}
	}
	c.Range, c.Isolation, c.Sockets = pointsRange{c.Range, g}, pointsIsolation{c.Isolation, g}, pointsSockets{c.Sockets, g}
	c.Log = slog.New(pointsLog{c.Log.Handler(), g})
	return c
}

type pointsTable struct {
	helper.Table
	gate host.Gate
}

func (t pointsTable) Put(ctx context.Context, v lease.Verdict) error {
	return orNot(t.gate, "table put", func() error { return t.Table.Put(ctx, v) })
}

func (t pointsTable) Delete(ctx context.Context, v lease.Verdict) error {
	return orNot(t.gate, "table delete", func() error { return t.Table.Delete(ctx, v) })
}

func (t pointsTable) Refuse(ctx context.Context, v lease.Verdict) error {
	return orNot(t.gate, "table refuse", func() error { return t.Table.Refuse(ctx, v) })
}

func (t pointsTable) Refill(ctx context.Context, all []lease.Verdict) error {
	return orNot(t.gate, "table refill", func() error { return t.Table.Refill(ctx, all) })
}

// orNot makes a change unless the gate has it fail.
func orNot(g host.Gate, change string, do func() error) error {
	if err := g(change); err != nil {
		return err
	}
	return do()
}

type pointsFlows struct {
	helper.Flows
	gate host.Gate
}

func (f pointsFlows) Cut(ctx context.Context, v lease.Verdict, groups []uint64, p lease.Place, owner func(uint64) uint16) (n int, err error) {
	err = orNot(f.gate, "flows cut", func() error { n, err = f.Flows.Cut(ctx, v, groups, p, owner); return err })
	return n, err
}

func (f pointsFlows) End(ctx context.Context, groups []uint64) (n int, err error) {
	err = orNot(f.gate, "sockets end", func() error { n, err = f.Flows.End(ctx, groups); return err })
	return n, err
}

type pointsLocalhost struct {
	helper.Localhost
	gate host.Gate
}

func (l pointsLocalhost) Put(h lease.Home) error {
	return orNot(l.gate, "home put", func() error { return l.Localhost.Put(h) })
}

func (l pointsLocalhost) Delete(h lease.Home) error {
	return orNot(l.gate, "home delete", func() error { return l.Localhost.Delete(h) })
}

func (l pointsLocalhost) Sync(all []lease.Home) error {
	return orNot(l.gate, "home sync", func() error { return l.Localhost.Sync(all) })
}

type pointsRange struct {
	helper.Range
	gate host.Gate
}

func (r pointsRange) Free(a netip.Addr) error {
	return orNot(r.gate, "guard address", func() error { return r.Range.Free(a) })
}

type pointsIsolation struct {
	helper.Isolation
	gate host.Gate
}

func (i pointsIsolation) Of(pid int) (helper.Namespace, error) {
	n, err := i.Isolation.Of(pid)
	if err != nil {
		return nil, err
	}
	return pointsNamespace{n, i.gate}, nil
}

type pointsNamespace struct {
	helper.Namespace
	gate host.Gate
}

func (n pointsNamespace) Prepare(ctx context.Context, tap *lease.Tap) (f *os.File, err error) {
	err = orNot(n.gate, "namespace prepare", func() error { f, err = n.Namespace.Prepare(ctx, tap); return err })
	return f, err
}

func (n pointsNamespace) RemoveTaps(ctx context.Context) error {
	return orNot(n.gate, "namespace remove taps", func() error { return n.Namespace.RemoveTaps(ctx) })
}

type pointsSockets struct {
	helper.Sockets
	gate host.Gate
}

func (s pointsSockets) Listen(ctx context.Context, l helper.Leaf, uid uint32, p lease.Protocol, at netip.AddrPort) (f *os.File, got netip.AddrPort, err error) {
	err = orNot(s.gate, "listen", func() error { f, got, err = s.Sockets.Listen(ctx, l, uid, p, at); return err })
	return f, got, err
}

// pointsLog asks before each line: what it says is done, the reply is not sent.
type pointsLog struct {
	slog.Handler
	gate host.Gate
}

func (l pointsLog) Handle(ctx context.Context, r slog.Record) error {
	_ = l.gate("log " + r.Message)
	return l.Handler.Handle(ctx, r)
}

func (l pointsLog) WithAttrs(a []slog.Attr) slog.Handler {
	return pointsLog{l.Handler.WithAttrs(a), l.gate}
}
func (l pointsLog) WithGroup(name string) slog.Handler {
	return pointsLog{l.Handler.WithGroup(name), l.gate}
}
