//go:build darwin || fakedarwin

package main

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"time"
)

const (
	// hangupEvery is the least time between two signals to mDNSResponder, which forgets all that it knows.
	hangupEvery = time.Second
	// answererWait bounds the wait for the answerer to have read the zone: what is looked up before it
	// has would be remembered as absent again.
	answererWait = 2 * time.Second
)

// macNames publishes the zone, then has mDNSResponder forget: a name that was looked up before its box
// existed is dead for 77 s and more otherwise.
type macNames struct {
	zone   zonePort
	log    *slog.Logger
	hangup func(context.Context) error
	serial func(context.Context) (uint64, error)

	mu    sync.Mutex
	last  map[string]netip.Addr
	fresh chan uint64 // generation of the zone that nobody was told of yet; made by run or Publish
}

func (n *macNames) channel() chan uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fresh == nil {
		n.fresh = make(chan uint64, 1)
	}
	return n.fresh
}

// Publish implements helper.Names; the helper calls it one at a time.
func (n *macNames) Publish(names map[string]netip.Addr) error {
	if err := n.zone.Publish(names); err != nil {
		return err
	}
	same := maps.Equal(names, n.last)
	n.last = maps.Clone(names)
	if same {
		return nil
	}
	fresh := n.channel()
	select {
	case <-fresh: // an older one that is still due
	default:
	}
	fresh <- n.zone.generation
	return nil
}

// run signals after changes, at most once in hangupEvery and never too few times: the last change is
// always followed by a signal.
func (n *macNames) run(ctx context.Context) {
	fresh := n.channel()
	for {
		select {
		case <-ctx.Done():
			return
		case generation := <-fresh:
			n.await(ctx, generation)
			if err := n.hangup(ctx); err != nil && ctx.Err() == nil {
				n.log.Warn("mDNSResponder was not told to forget: new names may be late", "cause", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(hangupEvery):
		}
	}
}

// await returns when the answerer has that zone, or when it is not to be expected any more.
func (n *macNames) await(ctx context.Context, generation uint64) {
	ctx, cancel := context.WithTimeout(ctx, answererWait)
	defer cancel()
	for {
		if at, err := n.serial(ctx); err == nil && at == generation {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}
