//go:build darwin || fakedarwin

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/gominimal/minhost/darwin"
	"github.com/gominimal/minhost/darwin/launchd"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/resolverd"
)

// macRoles are the hidden verbs that launchd calls, but for the boot job: that is apply.
func macRoles(env *environment, l darwin.Layout, edges macEdges) []*cobra.Command {
	role := func(use, short string, run func(context.Context) error) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Hidden: true, Args: usage(cobra.NoArgs),
			PreRun: func(*cobra.Command, []string) { env.Level.Set(slog.LevelInfo) },
			RunE: func(cmd *cobra.Command, _ []string) error {
				ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
				defer stop()
				return run(ctx)
			}}
	}
	return []*cobra.Command{
		role("helper", "Serve the API (started by launchd)", func(ctx context.Context) error { return macHelper(ctx, env, l, edges) }),
		role("resolverd", "Answer the zone (started by launchd)", func(ctx context.Context) error { return macResolverd(ctx, env, l, edges) }),
	}
}

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
	env.Log.Info("ready", append([]any{"part", "answerer"}, (darwin.Boot{Run: host.Exec{}}).Stamp(ctx)...)...)
	runtime.GOMAXPROCS(max(resolverd.Processors, runtime.GOMAXPROCS(0)))
	return resolverd.Run(ctx, resolverd.Config{
		Port: resolverd.DefaultPort, Files: files, ZoneFile: l.Zone, BootID: boot, Report: l.Reports, Watched: l.Lookups, Log: env.Log,
	})
}

// macComplete binds what launchd did not hand over: everything when the answerer was started by hand, and
// a socket whose port was taken when launchd loaded the job, of which launchd tells nobody.
func macComplete(files []*os.File) ([]*os.File, error) {
	at := macZone().Server
	busy := func(network string, err error) error {
		for _, f := range files {
			f.Close()
		}
		return macBusy(network, at, err)
	}
	have := map[int]bool{}
	for _, f := range files {
		// What it is counts, not its name or place.
		if kind, err := syscall.GetsockoptInt(int(f.Fd()), syscall.SOL_SOCKET, syscall.SO_TYPE); err == nil {
			have[kind] = true
		}
	}
	if !have[syscall.SOCK_DGRAM] {
		u, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
		if err != nil {
			return nil, busy("udp", err)
		}
		defer u.Close()
		f, err := u.File()
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if !have[syscall.SOCK_STREAM] {
		t, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(at))
		if err != nil {
			return nil, busy("tcp", err)
		}
		defer t.Close()
		f, err := t.File()
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}
