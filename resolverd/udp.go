package resolverd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/gominimal/minhost/resolverd/datagram"
	"github.com/gominimal/minhost/resolverd/report"
)

// A socket that fails this often in a row, with growing pauses of up to retryMax, is given up.
const (
	retries  = 10
	retryMax = time.Second
)

// udpLoop is one socket that is read and answered.
type udpLoop struct {
	datagram.Batch
	view  View
	self  netip.AddrPort
	beats atomic.Uint64 // batches that were answered
}

// openUDP takes over the sockets. After an error nothing is left open.
func (s *Server) openUDP() (loops []*udpLoop, err error) {
	for _, u := range s.sockets.udp {
		self := localAddr(u.LocalAddr())
		batch, err := s.batch(u.UDPConn, u.view == BoxView)
		if err != nil {
			for _, l := range loops {
				l.Close()
			}
			return nil, fmt.Errorf("read from udp %s: %w", self, err)
		}
		loops = append(loops, &udpLoop{Batch: batch, view: u.view, self: self})
	}
	return loops, nil
}

// serveUDP answers one socket, batch by batch: the queries of a batch see one zone.
func (s *Server) serveUDP(ctx context.Context, batch *udpLoop) error {
	name, failed := batch.self.String(), 0
	defer batch.Close()
	stop := context.AfterFunc(ctx, batch.Stop)
	defer stop()
	var counted report.Counters
	for {
		messages, err := batch.Read()
		switch {
		case errors.Is(err, datagram.ErrLost):
			s.log.Debug("cannot read all queries", "socket", name, "err", err)
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			if failed++; failed > retries {
				return fmt.Errorf("read from udp %s: %w", name, err)
			}
			s.log.Warn("cannot read a query", "socket", name, "err", err)
			pause(ctx, failed)
			continue
		}
		failed = 0
		zone, heard := s.zone.Load(), s.audience.listens()
		for i := range messages {
			m := &messages[i]
			kind := s.answerUDP(m, zone, batch.view)
			if kind == report.Silent && m.From == batch.self {
				continue // the watchdog's
			}
			counted[kind]++
			if heard {
				s.tellLookup(kind, batch.view, m.Data, m.Mark, "udp", m.From)
			}
		}
		if err := batch.Write(); err != nil {
			// A reply that cannot be sent is one that the asker misses and asks for again.
			s.log.Debug("cannot send a reply", "socket", name, "err", err)
		}
		s.counts.add(&counted)
		batch.beats.Add(1)
	}
}

// answerUDP sets the reply to a message and tells its kind.
func (s *Server) answerUDP(m *datagram.Message, zone *Zone, view View) report.Kind {
	if !s.peers.local(m.From.Addr()) {
		return report.Silent
	}
	n := 0
	if s.udpLimit >= minUDPSize {
		n = fast(m.Space, m.Data, zone, view)
	}
	if n > 0 {
		m.Reply = m.Space[:n]
	} else {
		m.Reply = Answer(m.Data, zone, view, s.udpLimit)
	}
	kind := kindOf(m.Reply)
	if kind == report.Outside {
		s.tellRefused(m.Data, m.Mark, "udp", m.From)
	}
	return kind
}

// pause waits longer with each failure in a row, and not at all when ctx has ended.
func pause(ctx context.Context, failed int) { wait(ctx, min(time.Millisecond<<failed, retryMax)) }

// wait returns after some time, and when ctx ends.
func wait(ctx context.Context, some time.Duration) {
	timer := time.NewTimer(some)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
