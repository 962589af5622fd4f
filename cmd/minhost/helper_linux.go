package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/helper"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/linux"
	"github.com/gominimal/minhost/linux/cgroup"
	"github.com/gominimal/minhost/linux/cut"
	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/linux/systemd"
)

// bootIDPath names this boot (random(4)).
const bootIDPath = "/proc/sys/kernel/random/boot_id"

func bootID() (string, error) {
	b, err := os.ReadFile(bootIDPath)
	return strings.TrimSpace(string(b)), err
}

// duplicate copies a descriptor, close-on-exec.
func duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate descriptor: %w", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// handedOver is the helper's socket as the service manager made it, and what an earlier helper had it keep.
func handedOver() (socket *net.UnixListener, kept *tableOwner, err error) {
	kept = &tableOwner{}
	for _, f := range activation.Files(true) {
		if kept.take(f) {
			continue
		}
		l, err := net.FileListener(f)
		f.Close()
		if u, ok := l.(*net.UnixListener); ok && err == nil {
			u.SetUnlinkOnClose(false) // the manager's, and its next helper's
			socket = u
		}
	}
	if socket == nil {
		return nil, nil, hinted{errors.New("helper: no socket was handed over: it is started by the service manager"), "minhost finalize-install"}
	}
	return socket, kept, nil
}

// runHelper is `minhost helper`: replay, then serve until SIGTERM.
func runHelper(ctx context.Context, env *environment, l linux.Layout) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	socket, kept, err := handedOver()
	if err != nil {
		return err
	}
	defer socket.Close()
	defer kept.close()
	boot, err := bootID()
	if err != nil {
		return fmt.Errorf("helper: %w", err)
	}
	disk, err := host.OpenDisk("/", helperGate(l.Run))
	if err != nil {
		return err
	}
	defer disk.Close()
	lock, err := host.TakeLock(ctx, disk, l.HelperPID, 5*time.Second)
	if err != nil {
		return fmt.Errorf("helper: %w", err)
	}
	defer lock.Release()
	return serveHelper(ctx, env, l, disk, boot, socket, kept)
}

// openGround opens the tree as the config of this host has it.
func openGround(l linux.Layout, manager systemd.Manager, log *slog.Logger) (linux.Ground, *cgroup.Tree, error) {
	config, err := readConfig(l)
	if err != nil {
		return linux.Ground{}, nil, fmt.Errorf("helper: %w", err)
	}
	ground := linux.Ground{Rel: treeRel(manager), Marks: config.Marks, Planes: config.Planes, Gate: helperGate(l.Run), Log: log, Lacking: lacking()}
	tree, err := ground.Tree()
	if err != nil {
		return ground, nil, hinted{fmt.Errorf("helper: %w", err), "minhost verify"}
	}
	if _, err := tree.BoxesID(); err != nil {
		tree.Close()
		return ground, nil, hinted{fmt.Errorf("helper: %w", err), "as root: minhost apply"}
	}
	return ground, tree, nil
}

func serveHelper(ctx context.Context, env *environment, l linux.Layout, disk *host.Disk, boot string, socket *net.UnixListener, kept *tableOwner) error {
	log, manager := env.Log, serviceManager()
	ground, tree, err := openGround(l, manager, log)
	if err != nil {
		return err
	}
	defer tree.Close()
	store := helper.FileStore{FS: disk, Dir: l.Leases, BootID: boot}
	if err := store.Prepare(); err != nil {
		return fmt.Errorf("helper: %w", err)
	}
	cfg := helperTimes(helper.Config{
		Version: programVersion(), BootID: boot, ServiceManager: string(manager.Kind),
		Tree: treePort{tree}, Names: &zonePort{fs: disk, path: l.Zone, boot: boot}, Range: rangePort{},
		Processes: processPort{}, Isolation: isolationPort{}, Sockets: socketsPort{}, Peers: helper.KernelPeers{}, Checker: groundChecker{ground, l.Program, kept}, Store: store,
		Operators: operatorCheck(disk, l.Operators), Local: host.Local,
		Log: log,
	})
	if homes := ownLocalhosts(&cfg, ground, tree, log); homes != nil {
		defer homes.Close()
	}
	var h *helper.Helper
	var flows *cut.Cutter
	reader, table, err := openTable(ctx, ground, kept, func(r nft.Refused) {
		h.Refused(helper.Refused{Number: r.Number, Protocol: r.Protocol, To: r.To, Inbound: r.Inbound})
	})
	switch {
	case err != nil:
		cfg.Unenforceable = api.Text(err.Error())
		log.Error("no egress verdict on this host", "cause", err)
	default:
		defer table.Close()
		defer reader.Close()
		if flows, err = cut.New(ground.Marks, log); err != nil {
			return fmt.Errorf("helper: %w", err)
		}
		defer flows.Close()
		cfg.Table, cfg.Flows, cfg.Refusals, cfg.Audience = table, flows, reader, audienceFile{disk, l.Lookups}
		cfg.Runners = &runnersPort{tree: tree, table: table}
	}
	waiting := openListeners(log)
	defer waiting.Close()
	cfg.Listeners = waiting
	h = helper.New(withPoints(cfg, helperGate(l.Run)))
	defer h.Close()
	if err := h.Replay(ctx); err != nil {
		return fmt.Errorf("helper: replay: %w", err)
	}
	if reader != nil {
		go reader.Run(ctx)
		go h.WatchTable(ctx)
		go hearAnswerer(ctx, l.Reports, h, flows, log)
	}
	go h.WatchLeaves(ctx)
	go h.WatchListeners(ctx)
	notifyReady(env)
	go keepWatchdog(ctx, env)
	return h.Serve(ctx, socket)
}
