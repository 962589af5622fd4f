//go:build darwin || fakedarwin

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/gominimal/minhost/darwin"
	"github.com/gominimal/minhost/darwin/launchd"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/resolverd"
	"github.com/gominimal/minhost/resolverd/portholder"
	"github.com/gominimal/minhost/resolverd/probe"
)

// macResolverd is `minhost resolverd`: the answerer, unprivileged. Started by hand it binds for itself.
func macResolverd(ctx context.Context, env *environment, l darwin.Layout, edges macEdges) error {
	boot, err := env.Platform.BootID()
	if err != nil {
		return fmt.Errorf("resolverd: %w", err)
	}
	files, err := edges.Activate(launchd.SocketNames()...)
	if err != nil {
		return fmt.Errorf("resolverd: %w", err)
	}
	if files, err = macComplete(files); err != nil {
		return fmt.Errorf("resolverd: %w", err)
	}
	runtime.GOMAXPROCS(max(resolverd.Processors, runtime.GOMAXPROCS(0)))
	debug.SetGCPercent(resolverd.GCPercent)
	server, err := resolverd.Listen(resolverd.Config{
		Port: resolverd.DefaultPort, Files: files, ZoneFile: l.Zone, BootID: boot, Report: l.Reports, Watched: l.Lookups, Log: env.Log,
	})
	if err != nil {
		return err
	}
	env.Log.Info("ready", append([]any{"part", "answerer"}, (darwin.Boot{Run: host.Exec{}}).Stamp(ctx)...)...)
	return server.Serve(ctx)
}

// macSocket is one of the two that the answerer has.
type macSocket struct {
	kind    int // SO_TYPE
	network string
	listen  func() (macListener, error)
}

type macListener interface {
	File() (*os.File, error)
	Close() error
}

func macSocketsOfAnswerer() [2]macSocket {
	at := macZone().Server
	return [2]macSocket{
		{syscall.SOCK_DGRAM, "udp", func() (macListener, error) { return net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at)) }},
		{syscall.SOCK_STREAM, "tcp", func() (macListener, error) { return net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(at)) }},
	}
}

// open binds, and says what to type about a port that cannot be had.
func (s macSocket) open() (macListener, error) {
	l, err := s.listen()
	if err == nil {
		return l, nil
	}
	if sys := new(net.OpError); errors.As(err, &sys) {
		err = sys.Err // the rest repeats network and address
	}
	at := macZone().Server
	return nil, fmt.Errorf("listen %s %s: %w, %s", s.network, at, err, portholder.Remedy(s.network, at))
}

// macComplete binds what launchd did not hand over: everything when the answerer was started by hand, and
// a socket whose port was taken when launchd loaded the job, of which launchd tells nobody.
func macComplete(files []*os.File) ([]*os.File, error) {
	have := map[int]bool{}
	for _, f := range files {
		// What it is counts, not its name or place.
		if kind, err := syscall.GetsockoptInt(int(f.Fd()), syscall.SOL_SOCKET, syscall.SO_TYPE); err == nil {
			have[kind] = true
		}
	}
	for _, s := range macSocketsOfAnswerer() {
		if have[s.kind] {
			continue
		}
		f, err := s.file()
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func (s macSocket) file() (*os.File, error) {
	l, err := s.open()
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return l.File()
}

// macPortFree binds the answerer's port for a moment. launchd would not say that it could not.
func macPortFree() error {
	for _, s := range macSocketsOfAnswerer() {
		l, err := s.open()
		if err != nil {
			return err
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}

func macAnswers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	_, err := probe.Check(ctx, macZone().Server.String())
	return err
}
