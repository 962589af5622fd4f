package resolverd

import (
	"context"
	"fmt"
	"time"
)

const (
	udpBuffer = 65535 // no datagram is cut, so that a long query is not mistaken for a broken one

	// A socket that fails this often in a row, with growing pauses of up to retryMax, is given up.
	retries  = 10
	retryMax = time.Second
)

// serveUDP answers one socket. Reply and query use the same socket without control data: on macOS
// a reply that sets its source address re-binds the socket to every interface.
func (s *Server) serveUDP(ctx context.Context, socket udpSocket) error {
	stop := context.AfterFunc(ctx, func() { socket.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	buf := make([]byte, udpBuffer)
	failed := 0
	for {
		n, from, err := socket.ReadFromUDPAddrPort(buf)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			if failed++; failed > retries {
				return fmt.Errorf("read from udp %s: %w", socket.LocalAddr(), err)
			}
			s.log.Warn("cannot read a query", "socket", socket.LocalAddr().String(), "err", err)
			pause(ctx, failed)
			continue
		}
		failed = 0
		if !s.peers.local(from.Addr()) {
			continue
		}
		if out := Answer(buf[:n], s.zone.Load(), socket.view, s.udpLimit); out != nil {
			// A reply that cannot be sent is one that the asker misses and asks for again.
			if _, err := socket.WriteToUDPAddrPort(out, from); err != nil {
				s.log.Debug("cannot send a reply", "socket", socket.LocalAddr().String(), "err", err)
			}
		}
	}
}

// pause waits longer with each failure in a row, and not at all when ctx has ended.
func pause(ctx context.Context, failed int) {
	timer := time.NewTimer(min(time.Millisecond<<failed, retryMax))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
