package helper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/varlink/go/varlink"
)

// acceptAgain is the pause behind an accept that failed for want of descriptors or memory.
const acceptAgain = 50 * time.Millisecond

// server is the accepting half: limits per account before a byte is read, one reader and one worker
// a connection.
type server struct {
	h        *Helper
	service  *varlink.Service
	accounts *accounts
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
	s := &server{h: h, service: service, accounts: h.accounts}
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
			if !scarce(err) {
				return fmt.Errorf("accept: %w", err)
			}
			h.log.Error("accept", "cause", err)
			select {
			case <-ctx.Done():
			case <-time.After(acceptAgain):
			}
			continue
		}
		if c := s.admit(ctx, uc); c != nil { // here, so that who came first is in first
			calls.Go(func() {
				defer s.dismiss(c)
				s.loop(ctx, c)
			})
		}
	}
}

// admit asks the kernel who connected and counts the connection; nil when it is refused, and closed.
func (s *server) admit(ctx context.Context, uc *net.UnixConn) *conn {
	peer, err := s.h.cfg.Peers.Identify(uc)
	if err != nil {
		s.h.log.Info("connection refused", "cause", err)
		uc.Close()
		return nil
	}
	c := &conn{uc: uc, peer: peer, account: s.h.accountOf(peer), message: s.h.cfg.MessageTime, idle: s.h.cfg.IdleAfter}
	c.ctx, c.cancel = context.WithCancel(ctx)
	limit := s.accounts.enter(c, s.h.holding)
	if limit == 0 {
		return c
	}
	// Without waiting for the peer: who is refused must cost less than who is not. Nothing is queued before it, so
	// that the reply is taken at once.
	s.send(c, &api.TooManyConnections{Limit: limit, Message: fmt.Sprintf("uid %d has %d connections already", peer.UID, limit), Next: "close some, or try again: one that holds a lease is not counted"})
	s.dismiss(c)
	return nil
}

// dismiss lets go of a connection, counted or not.
func (s *server) dismiss(c *conn) {
	s.accounts.leave(c)
	c.cancel()
	c.peer.release()
	c.uc.Close()
}

// scarce says that an accept failed for something that may be had again.
func scarce(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// accountOf says with whom a connection is counted. In doubt it is a box.
func (h *Helper) accountOf(p Peer) account {
	leaf, err := h.leafOf(p)
	if err != nil {
		leaf = unknownLeafName
	}
	return account{p.UID, leaf}
}

// loop reads until the end and works the calls one after the other, as varlink wants.
func (s *server) loop(ctx context.Context, c *conn) {
	waiting := make(chan message, maxWaiting)
	worked := make(chan struct{})
	var unanswered atomic.Int32
	c.busy = func() bool { return unanswered.Load() > 0 || s.h.owns(c) }
	go func() {
		defer close(worked)
		for m := range waiting {
			s.work(c, m)
			unanswered.Add(-1)
		}
	}()
	closer := context.AfterFunc(c.ctx, func() { c.uc.CloseRead() })
	defer closer()
	err := c.read(func(m message) error {
		unanswered.Add(1)
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
	if c.ctx.Err() != nil || s.accounts.pace(c.ctx, c.account) != nil {
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
