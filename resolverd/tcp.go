package resolverd

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gominimal/minhost/resolverd/report"
)

// tcpLimits bound what one asker can hold of us over TCP (RFC 7766 section 6).
type tcpLimits struct {
	conns   int           // connections of one listener
	idle    time.Duration // between two queries
	message time.Duration // from the first octet of a query to its last
	write   time.Duration // for a reply to be taken
}

func defaultTCPLimits() tcpLimits {
	return tcpLimits{conns: 64, idle: 10 * time.Second, message: 2 * time.Second, write: 2 * time.Second}
}

// tcpConn is one accepted connection.
type tcpConn struct {
	net.Conn
	lastQuery time.Time // guarded by tcpPool.mu
}

// tcpPool is the open connections of one listener.
type tcpPool struct {
	mu    sync.Mutex
	open  map[*tcpConn]struct{}
	limit int
}

// add admits a connection. At the limit the one that has been without a query the longest is
// closed for it, so that idle connections keep nobody out.
func (p *tcpPool) add(c *tcpConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.open) >= p.limit {
		var oldest *tcpConn
		for other := range p.open {
			if oldest == nil || other.lastQuery.Before(oldest.lastQuery) {
				oldest = other
			}
		}
		oldest.Close()
		delete(p.open, oldest)
	}
	c.lastQuery = time.Now()
	p.open[c] = struct{}{}
}

func (p *tcpPool) touch(c *tcpConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.lastQuery = time.Now()
}

func (p *tcpPool) remove(c *tcpConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// serveTCP accepts until ctx ends and returns when every connection is closed.
func (s *Server) serveTCP(ctx context.Context, socket tcpSocket) error {
	stop := context.AfterFunc(ctx, func() { socket.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	pool := &tcpPool{open: map[*tcpConn]struct{}{}, limit: s.tcp.conns}
	var wg sync.WaitGroup
	defer wg.Wait()
	failed := 0
	for {
		accepted, err := socket.AcceptTCP()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil: // out of descriptors, or a connection that was reset before we took it
			if failed++; failed > retries {
				return fmt.Errorf("accept on tcp %s: %w", socket.Addr(), err)
			}
			s.log.Warn("cannot accept a connection", "socket", socket.Addr().String(), "err", err)
			pause(ctx, failed)
			continue
		}
		failed = 0
		if !s.peers.local(localAddr(accepted.RemoteAddr()).Addr()) {
			accepted.Close()
			continue
		}
		conn := &tcpConn{Conn: accepted}
		pool.add(conn)
		wg.Go(func() {
			defer conn.Close()
			defer pool.remove(conn)
			s.serveConn(ctx, conn, pool, socket.view)
		})
	}
}

// serveConn answers the queries of one connection in their order, however many have been sent
// ahead. It ends at an error, at a deadline, after ctx, and at what Answer meets with silence.
func (s *Server) serveConn(ctx context.Context, conn *tcpConn, pool *tcpPool, view View) {
	stop := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	in := bufio.NewReaderSize(conn, 1024)
	for {
		conn.SetReadDeadline(time.Now().Add(s.tcp.idle))
		if ctx.Err() != nil {
			return // the deadline above may have replaced that of the end
		}
		if _, err := in.Peek(1); err != nil {
			return
		}
		conn.SetReadDeadline(time.Now().Add(s.tcp.message))
		msg, err := readMessage(in)
		if err != nil {
			return
		}
		out := Answer(msg, s.zone.Load(), view, TCPLimit)
		kind := kindOf(out)
		s.counts[kind].Add(1)
		if kind == report.Outside { // the kernel tells no mark of a stream
			s.tellRefused(msg, 0, "tcp", localAddr(conn.RemoteAddr()))
		}
		if s.audience.listens() {
			s.tellLookup(kind, view, msg, 0, "tcp", localAddr(conn.RemoteAddr()))
		}
		if out == nil {
			return
		}
		pool.touch(conn)
		conn.SetWriteDeadline(time.Now().Add(s.tcp.write))
		framed := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(out)), uint16(len(out)))
		if _, err := conn.Write(append(framed, out...)); err != nil {
			return
		}
	}
}

// readMessage reads one message behind its length. Memory grows with what arrives, not with the
// length that was said.
func readMessage(in *bufio.Reader) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(in, size[:]); err != nil {
		return nil, err
	}
	want := int64(binary.BigEndian.Uint16(size[:]))
	msg, err := io.ReadAll(io.LimitReader(in, want))
	if err == nil && int64(len(msg)) < want {
		err = io.ErrUnexpectedEOF
	}
	return msg, err
}
