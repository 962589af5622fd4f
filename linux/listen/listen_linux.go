package listen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/linux/errand"
)

// Name of the errand.
const Name = "listen"

// backlog is cut by the kernel to net.core.somaxconn.
const backlog = 4096

// unprivileged ports are from here on, unless net.ipv4.ip_unprivileged_port_start says otherwise.
const unprivileged = 1024

// wanted are the parameters of the errand.
type wanted struct {
	Stream bool           `json:"stream"`
	At     netip.AddrPort `json:"at"`
}

// In makes a socket inside a leaf, given by its open directory: stream is TCP, else UDP. Port 0 takes a free
// one. The address it returns is read from the socket. Errors that say why: unix.EADDRINUSE,
// unix.EADDRNOTAVAIL.
func In(ctx context.Context, leaf *os.File, uid uint32, stream bool, at netip.AddrPort) (*os.File, netip.AddrPort, error) {
	s := errand.Spec{Name: Name, In: wanted{stream, at}, Leaf: leaf, User: &uid}
	if at.Port() != 0 && at.Port() < unprivileged {
		s.Capabilities = []uintptr{unix.CAP_NET_BIND_SERVICE}
	}
	f, err := errand.Run(ctx, s)
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	if f == nil {
		return nil, netip.AddrPort{}, errors.New("listen: the child made no socket")
	}
	got, err := check(f, stream, at)
	if err != nil {
		f.Close()
		return nil, netip.AddrPort{}, fmt.Errorf("listen: what came from the leaf is not the socket: %w", err)
	}
	return f, got, nil
}

// Child is the errand, inside the leaf.
func Child(in json.RawMessage, _ []*os.File) (*os.File, error) {
	var w wanted
	if err := json.Unmarshal(in, &w); err != nil {
		return nil, err
	}
	fd, err := unix.Socket(family(w.At.Addr()), kind(w.Stream)|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), "socket")
	if err := prepare(fd, w); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func prepare(fd int, w wanted) error {
	if w.Stream { // else a listener that was closed a moment ago keeps its port for a minute
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return os.NewSyscallError("SO_REUSEADDR", err)
		}
	}
	if err := unix.Bind(fd, sockaddr(w.At)); err != nil {
		return os.NewSyscallError("bind", err)
	}
	if !w.Stream {
		return nil
	}
	return os.NewSyscallError("listen", unix.Listen(fd, backlog))
}

// check asks the socket itself: the child ran as the user of the box, who may have had it send another.
func check(f *os.File, stream bool, at netip.AddrPort) (netip.AddrPort, error) {
	fd := int(f.Fd())
	for _, o := range []struct{ name, want int }{
		{unix.SO_DOMAIN, family(at.Addr())}, {unix.SO_TYPE, kind(stream)}, {unix.SO_ACCEPTCONN, boolInt(stream)},
	} {
		got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, o.name)
		if err != nil || got != o.want {
			return netip.AddrPort{}, errors.Join(err, fmt.Errorf("socket option %d is %d", o.name, got))
		}
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, os.NewSyscallError("getsockname", err)
	}
	got := addrPort(name)
	if got.Addr() != at.Addr() || at.Port() != 0 && got.Port() != at.Port() {
		return netip.AddrPort{}, fmt.Errorf("it is bound to %s, not to %s", got, at)
	}
	return got, nil
}

func family(a netip.Addr) int {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func kind(stream bool) int {
	if stream {
		return unix.SOCK_STREAM
	}
	return unix.SOCK_DGRAM
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

func addrPort(s unix.Sockaddr) netip.AddrPort {
	switch s := s.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(s.Addr), uint16(s.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(s.Addr), uint16(s.Port))
	}
	return netip.AddrPort{}
}
