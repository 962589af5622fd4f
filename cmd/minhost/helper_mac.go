//go:build darwin || fakedarwin

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/gominimal/minhost/darwin"
	"github.com/gominimal/minhost/darwin/boxes"
	"github.com/gominimal/minhost/darwin/procs"
	"github.com/gominimal/minhost/darwin/resolverfile"
	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/helper"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/resolverd/probe"
)

// noVerdict is why, in every plan.
const noVerdict = "macOS decides about packets per user or per signed program, not per box: without a network extension no box can be confined"

// macHelper is `minhost helper`: replay, then serve until SIGTERM.
func macHelper(ctx context.Context, env *environment, l darwin.Layout, edges macEdges) error {
	boot, err := env.Platform.BootID()
	if err != nil {
		return fmt.Errorf("helper: boot id: %w", err)
	}
	files, err := host.OpenDisk("/", nil)
	if err != nil {
		return err
	}
	defer files.Close()
	if _, err := files.Lstat(l.State); err != nil {
		return hinted{fmt.Errorf("helper: %w", err), "minhost finalize-install"}
	}
	lock, err := host.TakeLock(ctx, files, l.HelperPID, 5*time.Second) // makes the folder too
	if err != nil {
		return fmt.Errorf("helper: %w", err)
	}
	defer lock.Release()
	table, err := procs.New()
	if err != nil {
		return fmt.Errorf("helper: %w", err)
	}
	tree := &boxes.Tree{FS: files, Dir: l.Boxes, BootID: boot, Table: table, Kill: func(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }}
	store := helper.FileStore{FS: files, Dir: l.Leases, BootID: boot}
	if err := errors.Join(tree.Prepare(), store.Prepare()); err != nil {
		return fmt.Errorf("helper: %w", err)
	}
	system := resolverfile.System{Run: host.Exec{}}
	names := &macNames{zone: zonePort{fs: files, path: l.Zone, boot: boot}, log: env.Log, hangup: system.Hangup, serial: macSerial}
	h := helper.New(helperTimes(helper.Config{
		Version: programVersion(), BootID: boot, ServiceManager: "launchd", Unenforceable: noVerdict, OneProcess: true,
		SharedLocalhost: "macOS has no localhost per box: servers bind the box's own address",
		Tree:            macTree{tree}, Names: names, Range: &macRangePort{}, Processes: macProcesses{table, edges.PIDOf}, Sockets: macSockets{}, Peers: macPeers{table, edges.CredOf},
		Checker: macChecker{}, Store: store, Operators: operatorCheck(files, l.Operators), Local: host.Local, Audience: audienceFile{files, l.Lookups},
		Log: env.Log,
	}))
	defer h.Close()
	if err := h.Replay(ctx); err != nil {
		return fmt.Errorf("helper: replay: %w", err)
	}
	go macHear(ctx, env, l, h)
	go names.run(ctx)
	socket, err := macListen(files, l.Socket)
	if err != nil {
		return fmt.Errorf("helper: %w", err)
	}
	defer socket.Close()
	env.Log.Info("ready", append([]any{"part", "helper"}, (darwin.Boot{Run: host.Exec{}}).Stamp(ctx)...)...)
	return h.Serve(ctx, socket)
}

// macListen makes the socket, whose folder is root's: nobody else can put one in its place. What a
// helper before left is no socket any more: the lock is ours.
func macListen(files host.FS, path string) (*net.UnixListener, error) {
	if err := files.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o666); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// macSerial is the generation of the zone that the answerer answers from.
func macSerial(ctx context.Context) (uint64, error) {
	r, err := probe.Check(ctx, macZone().Server.String())
	return uint64(r.Serial), err
}

// macChecker makes the checks that want root.
type macChecker struct{}

// Checks implements helper.Checker: there is neither tree nor table, and the range is everybody's to see.
func (macChecker) Checks(context.Context) []api.Check { return nil }
