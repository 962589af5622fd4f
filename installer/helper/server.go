package helper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/gominimal/minhost/installer/api"
	"github.com/varlink/go/varlink"
)

// server is the accepting half: limits per uid before a byte is read, one reader and one worker
// a connection.
type server struct {
	h       *Helper
	service *varlink.Service

	mu    sync.Mutex
	perID map[uint32]int
}

// Serve answers on a listener until the context ends, then closes every connection and waits
// for the calls that run. The listener stays open: the service manager holds it too.
func (h *Helper) Serve(ctx context.Context, l *net.UnixListener) error {
	service, err := varlink.NewService("gominimal", "minhost", h.cfg.Version, "https://github.com/gominimal/minhost")
	if err != nil {
		return fmt.Errorf("varlink: %w", err)
	}
	if err := service.RegisterInterface(&dispatcher{h}); err != nil {
		return fmt.Errorf("varlink: %w", err)
	}
	s := &server{h: h, service: service, perID: map[uint32]int{}}
	ctx, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		uc, err := l.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept: %w", err)
		}
		calls.Add(1)
		go func() {
			defer calls.Done()
			s.serve(ctx, uc)
		}()
	}
}

func (s *server) serve(ctx context.Context, uc *net.UnixConn) {
	defer uc.Close()
	peer, err := s.h.cfg.Peers.Identify(uc)
	if err != nil {
		s.h.log.Info("connection refused", "cause", err)
		return
	}
	defer peer.release()
	c := &conn{uc: uc, peer: peer}
	c.ctx, c.cancel = context.WithCancel(ctx)
	defer c.cancel()
	if !s.enter(peer.UID) {
		s.fail(c, &api.TooManyConnections{Limit: maxConnections,
			Message: fmt.Sprintf("uid %d has %d connections already", peer.UID, maxConnections), Next: "close some"})
		return
	}
	defer s.leave(peer.UID)
	s.loop(ctx, c)
}

// loop reads until the end and works the calls one after the other, as varlink wants.
func (s *server) loop(ctx context.Context, c *conn) {
	waiting := make(chan message, maxWaiting)
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		for m := range waiting {
			s.work(c, m)
		}
	}()
	closer := context.AfterFunc(c.ctx, func() { c.uc.CloseRead() })
	defer closer()
	err := c.read(func(m message) error {
		select {
		case waiting <- m:
			return nil
		default:
			return errTooMany
		}
	})
	switch {
	case errors.Is(err, errTooLarge):
		s.fail(c, &api.MessageTooLarge{Limit: maxMessage,
			Message: fmt.Sprintf("a message has at most %d octets", maxMessage)})
	case errors.Is(err, errTooMany):
		s.fail(c, &api.Malformed{Message: fmt.Sprintf("more than %d descriptors, or more than %d calls while one runs", maxFDs, maxWaiting)})
	}
	c.cancel() // the call that runs sees the end of its connection
	close(waiting)
	<-worked
	if ctx.Err() == nil {
		s.h.closed(c)
	} // else the helper ends, not the peer: its boxes go on, and the next helper waits for Adopt
}

// work handles one message. A connection whose context has ended gets no new call done.
func (s *server) work(c *conn, m message) {
	if c.ctx.Err() != nil {
		m.close()
		return
	}
	if err := api.Strict(m.raw, ""); err != nil {
		m.close()
		var e api.Error
		if !errors.As(err, &e) {
			e = &api.Malformed{Message: err.Error()}
		}
		s.send(c, e)
		return
	}
	ctx := context.WithValue(c.ctx, connKey{}, c)
	if err := s.service.HandleMessageWithFDs(ctx, c, m.raw, m.fds); err != nil {
		s.h.log.Debug("reply failed", "uid", c.peer.UID, "cause", err)
		c.cancel()
	}
}

// fail tells the peer why its connection ends.
func (s *server) fail(c *conn, e api.Error) {
	s.send(c, e)
	c.discard()
}

func (s *server) send(c *conn, e api.Error) {
	call := varlink.Call{Conn: c}
	if err := sendError(c.ctx, &call, e); err != nil {
		s.h.log.Debug("reply failed", "uid", c.peer.UID, "cause", err)
	}
}

func (s *server) enter(uid uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.perID[uid] >= maxConnections {
		return false
	}
	s.perID[uid]++
	return true
}

func (s *server) leave(uid uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.perID[uid]--; s.perID[uid] == 0 {
		delete(s.perID, uid)
	}
}
