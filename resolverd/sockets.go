package resolverd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
)

type udpSocket struct {
	*net.UDPConn
	view View
}

type tcpSocket struct {
	*net.TCPListener
	view View
}

// sockets are all that one answerer listens on.
type sockets struct {
	udp []udpSocket
	tcp []tcpSocket
}

func (s *sockets) close() {
	for _, u := range s.udp {
		u.Close()
	}
	for _, l := range s.tcp {
		l.Close()
	}
}

// names are for the log: "udp 127.0.0.1:15353 (host)".
func (s *sockets) names() []string {
	var all []string
	for _, u := range s.udp {
		all = append(all, fmt.Sprintf("udp %s (%s)", u.LocalAddr(), u.view))
	}
	for _, l := range s.tcp {
		all = append(all, fmt.Sprintf("tcp %s (%s)", l.Addr(), l.view))
	}
	return all
}

// has tells whether there is a socket of this network ("udp", "tcp") at addr.
func (s *sockets) has(network string, addr netip.AddrPort) bool {
	for _, u := range s.udp {
		if network == "udp" && localAddr(u.LocalAddr()) == addr {
			return true
		}
	}
	for _, l := range s.tcp {
		if network == "tcp" && localAddr(l.Addr()) == addr {
			return true
		}
	}
	return false
}

// Inherited returns the sockets that the service manager passed by systemd's protocol (LISTEN_FDS),
// and takes the variables out of the environment.
func Inherited() []*os.File { return activation.Files(true) }

// adopt classifies handed-over sockets by what they are, not by their order or names: those are
// text in a unit file, the type and address are facts. The host view must be among them.
func adopt(files []*os.File, endpoints []endpoint, log *slog.Logger) (sockets, error) {
	defer closeFiles(files)
	var all sockets
	for _, f := range files {
		if err := all.adoptOne(f, endpoints); err != nil {
			all.close()
			return sockets{}, err
		}
	}
	for _, e := range endpoints {
		for _, network := range []string{"udp", "tcp"} {
			if all.has(network, e.addr) {
				continue
			}
			if e.view == HostView {
				all.close()
				return sockets{}, fmt.Errorf("the service manager handed over no %s socket for %s: add it to the socket unit", network, e.addr)
			}
			log.Warn("the service manager handed over no socket for this address; it is not served", "network", network, "address", e.addr.String())
		}
	}
	return all, nil
}

func (s *sockets) adoptOne(f *os.File, endpoints []endpoint) error {
	kind, err := socketType(f)
	if err != nil {
		return fmt.Errorf("handed-over descriptor %s: %w", f.Name(), err)
	}
	var network string
	var addr net.Addr
	var keep func(View)
	var drop func() error
	switch kind {
	case syscall.SOCK_DGRAM:
		conn, err := net.FilePacketConn(f)
		if err != nil {
			return fmt.Errorf("handed-over datagram socket %s: %w", f.Name(), err)
		}
		network, addr, drop = "udp", conn.LocalAddr(), conn.Close
		keep = func(v View) { s.udp = append(s.udp, udpSocket{conn.(*net.UDPConn), v}) }
	case syscall.SOCK_STREAM:
		listener, err := net.FileListener(f)
		if err != nil {
			return fmt.Errorf("handed-over stream socket %s: %w", f.Name(), err)
		}
		network, addr, drop = "tcp", listener.Addr(), listener.Close
		keep = func(v View) { s.tcp = append(s.tcp, tcpSocket{listener.(*net.TCPListener), v}) }
	default:
		return fmt.Errorf("handed-over descriptor %s: socket type %d, want datagram or stream", f.Name(), kind)
	}
	e, err := match(localAddr(addr), endpoints)
	if err == nil && s.has(network, e.addr) {
		err = errors.New("handed over twice")
	}
	if err != nil {
		return errors.Join(fmt.Errorf("handed-over %s socket %s: %w", network, addr, err), drop())
	}
	keep(e.view)
	return nil
}

// match finds the endpoint of an address. A wildcard address matches none: a socket that the
// network can reach is never served.
func match(addr netip.AddrPort, endpoints []endpoint) (endpoint, error) {
	want := ""
	for _, e := range endpoints {
		if e.addr == addr {
			return e, nil
		}
		want += " " + e.addr.String()
	}
	return endpoint{}, fmt.Errorf("not an address of the answerer, want one of%s", want)
}

// localAddr is the address of a UDP or TCP socket, and invalid for any other (a unix socket).
func localAddr(addr net.Addr) netip.AddrPort {
	if a, ok := addr.(interface{ AddrPort() netip.AddrPort }); ok {
		return netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), a.AddrPort().Port())
	}
	return netip.AddrPort{}
}

// socketType asks the kernel for SO_TYPE. The descriptor's flags are left alone, where Fd would
// make it blocking.
func socketType(f *os.File) (kind int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var optErr error
	err = raw.Control(func(fd uintptr) {
		kind, optErr = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TYPE)
	})
	return kind, errors.Join(err, optErr)
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
