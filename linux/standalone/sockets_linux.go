package standalone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/resolverd/portholder"
)

// prepareRun makes the run folder, or checks that nobody but root can put something into it.
func prepareRun(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		return os.Chmod(dir, 0o755)
	}
	if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make run folder: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("run folder %s: not a folder that only root can write; look: ls -ld %s", dir, dir)
	}
	return nil
}

// listenHelper makes the helper's socket under another name and renames it: a caller meets either
// the old state or a socket that listens and that everybody may connect to.
func listenHelper(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("listen %s: something that is no socket is in the way", path)
	}
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listen %s: %w", path, err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh, Net: "unix"})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(fresh, 0o666); err != nil {
		return nil, err
	}
	f, err := l.File()
	if err != nil {
		return nil, err
	}
	if err := os.Rename(fresh, path); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// listenAnswerer binds every address for UDP and TCP, in this order.
func listenAnswerer(ctx context.Context, all []Listen, log *slog.Logger) (files []*os.File, err error) {
	defer func() {
		if err != nil {
			closeAll(files)
			files = nil
		}
	}()
	for _, l := range all {
		pair, err := listenPair(ctx, l)
		if l.Optional && (errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL)) {
			log.Info("address left out: the host has none of its kind", "address", l.Addr.String())
			continue
		}
		if err != nil {
			return files, err
		}
		files = append(files, pair...)
	}
	return files, nil
}

func listenPair(ctx context.Context, l Listen) ([]*os.File, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false) // Go's default; one host has one path to itself, and below such a socket is a second one
	// Named families, or Go would take udp6 for both and ask for more than the host has.
	family := map[bool]string{true: "4", false: "6"}[l.Addr.Addr().Is4()]
	pc, err := lc.ListenPacket(ctx, "udp"+family, l.Addr.String())
	if err != nil {
		return nil, portTaken(err, l, "udp")
	}
	defer pc.Close()
	if l.Marks {
		tellMarks(pc.(*net.UDPConn))
	}
	ln, err := lc.Listen(ctx, "tcp"+family, l.Addr.String())
	if err != nil {
		return nil, portTaken(err, l, "tcp")
	}
	defer ln.Close()
	udp, err := pc.(*net.UDPConn).File()
	if err != nil {
		return nil, err
	}
	tcp, err := ln.(*net.TCPListener).File()
	if err != nil {
		udp.Close()
		return nil, err
	}
	return []*os.File{udp, tcp}, nil
}

// tellMarks sets SO_RCVMARK (5.19) while there is somebody who may: it takes a capability that the
// answerer does not have, and it stays with the socket. Without it refused lookups name no box.
func tellMarks(conn *net.UDPConn) {
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVMARK, 1) })
	}
}

// portTaken adds who has the port, and what to do.
func portTaken(err error, l Listen, network string) error {
	if errors.Is(err, unix.EADDRINUSE) {
		return fmt.Errorf("%w, %s", err, portholder.Remedy(network, l.Addr))
	}
	return err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
