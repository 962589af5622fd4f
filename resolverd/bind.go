package resolverd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"syscall"

	"github.com/gominimal/minhost/resolverd/portholder"
)

// bind makes the sockets itself. A taken port is an error and never another port: the host's
// resolver was told this one.
func bind(endpoints []endpoint, log *slog.Logger) (sockets, error) {
	var all sockets
	for _, e := range endpoints {
		err := all.bindOne(e)
		switch {
		case err == nil:
		case !e.required && addressMissing(err):
			log.Info("address not on this host; it is not served", "address", e.addr.String(), "err", err)
		default:
			all.close()
			return sockets{}, err
		}
	}
	return all, nil
}

func (s *sockets) bindOne(e endpoint) error {
	family := "4"
	if e.addr.Addr().Is6() {
		family = "6"
	}
	conn, err := net.ListenUDP("udp"+family, net.UDPAddrFromAddrPort(e.addr))
	if err != nil {
		return explain("udp", e.addr, err)
	}
	var plain net.ListenConfig
	plain.SetMultipathTCP(false) // on by default in Go; one host has one path to itself
	listener, err := plain.Listen(context.Background(), "tcp"+family, e.addr.String())
	if err != nil {
		conn.Close()
		return explain("tcp", e.addr, err)
	}
	s.udp = append(s.udp, udpSocket{conn, e.view})
	s.tcp = append(s.tcp, tcpSocket{listener.(*net.TCPListener), e.view})
	return nil
}

// addressMissing is true of a host without IPv6: EAFNOSUPPORT with ipv6.disable=1, EADDRNOTAVAIL
// with the sysctl disable_ipv6.
func addressMissing(err error) bool {
	return errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// explain says what to type when a port is taken.
func explain(network string, addr netip.AddrPort, err error) error {
	var sys *net.OpError
	if errors.As(err, &sys) {
		err = sys.Err // the rest of OpError repeats network and address
	}
	err = fmt.Errorf("listen %s %s: %w", network, addr, err)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w, %s", err, portholder.Remedy(network, addr))
	}
	return err
}
