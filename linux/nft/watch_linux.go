package nft

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// gather is how long a change waits before it is told: one transaction is many messages.
const gather = 20 * time.Millisecond

// watch listens to the kernel's news about nf_tables.
type watch struct {
	nl      *netlink.Conn
	ours    func(portID uint32) bool
	changed chan struct{}
	done    chan struct{}

	mu     sync.Mutex
	timer  *time.Timer // runs while a change waits to be told
	closed bool
}

func newWatch(ours func(uint32) bool) (*watch, error) {
	nl, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, fmt.Errorf("watch nf_tables: %w", err)
	}
	if err := errors.Join(nl.SetReadBuffer(receiveBuffer), nl.JoinGroup(unix.NFNLGRP_NFTABLES)); err != nil {
		return nil, fmt.Errorf("watch nf_tables: %w", errors.Join(err, nl.Close()))
	}
	w := &watch{nl: nl, ours: ours, changed: make(chan struct{}, 1), done: make(chan struct{})}
	go w.run()
	return w, nil
}

func (w *watch) close() error {
	w.mu.Lock()
	again := w.closed
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	if again {
		return nil
	}
	err := w.nl.Close()
	<-w.done
	return err
}

// run reads news until the socket is closed. Lost news (ENOBUFS) may have been about us.
func (w *watch) run() {
	defer close(w.done)
	for {
		messages, err := w.nl.Receive()
		switch {
		case err == nil:
			for _, m := range messages {
				if w.foreign(m) {
					w.soon()
					break
				}
			}
		case errors.Is(err, unix.ENOBUFS):
			w.soon()
		case w.isClosed():
			return
		default:
			// Nothing else is known to happen; not to spin if it does.
			w.soon()
			time.Sleep(time.Second)
		}
	}
}

func (w *watch) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// foreign says whether a message tells of a change to our table by somebody else.
func (w *watch) foreign(m netlink.Message) bool {
	if m.Header.Type>>8 != unix.NFNL_SUBSYS_NFTABLES || len(m.Data) < 4 || m.Data[0] != inetFamily {
		return false
	}
	if w.ours(m.Header.PID) {
		return false
	}
	found := false
	_ = attributes(m.Data[4:], func(t uint16, v []byte) error {
		if t == attrTable && cstring(v) == tableName {
			found = true
		}
		return nil
	})
	return found
}

// soon tells a moment later, once for all changes until then.
func (w *watch) soon() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.timer != nil {
		return
	}
	w.timer = time.AfterFunc(gather, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.timer = nil
		select {
		case w.changed <- struct{}{}:
		default:
		}
	})
}
