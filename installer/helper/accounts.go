package helper

import (
	"context"
	"sync"
	"time"
)

// Limits of connections, at accept. Those that hold a lease are counted with the leases: a runner may keep one
// for each of its boxes.
const (
	maxConnections  = 32   // of one uid, that hold no lease
	maxHolding      = 1024 // of one uid in all
	maxFromInside   = 8    // from inside one leaf, which may not use up what its runner needs
	maxForgetful    = 1024 // accounts that are remembered for their rate
	unknownLeafName = "?"
)

// account is whose connections are counted together: those of a uid, and apart from them those that come from
// inside a leaf, box by box.
type account struct {
	uid  uint32
	leaf string
}

// accounts counts connections and paces calls. The zero value is not ready: use newAccounts.
type accounts struct {
	mu    sync.Mutex
	open  map[account]map[*conn]bool
	rates map[account]*bucket
	// perSecond and atOnce are callsPerSecond and callsAtOnce but in tests.
	perSecond, atOnce float64
}

func newAccounts() *accounts {
	return &accounts{open: map[account]map[*conn]bool{}, rates: map[account]*bucket{}, perSecond: callsPerSecond, atOnce: callsAtOnce}
}

// enter takes a connection in, or returns the limit that it would break. holds says which of the connections
// hold a lease.
func (a *accounts) enter(c *conn, holds func(map[*conn]bool) int) (limit int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	mine := a.open[c.account]
	switch n := len(mine); {
	case c.account.leaf != "" && n >= maxFromInside:
		return maxFromInside
	case n >= maxHolding:
		return maxHolding
	case n >= maxConnections && n-holds(mine) >= maxConnections:
		return maxConnections
	}
	if mine == nil {
		mine = map[*conn]bool{}
		a.open[c.account] = mine
	}
	mine[c] = true
	return 0
}

func (a *accounts) leave(c *conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open[c.account], c)
	if len(a.open[c.account]) == 0 {
		delete(a.open, c.account)
	}
}

// pace waits until a call of the account may be worked. Root is not paced.
func (a *accounts) pace(ctx context.Context, who account) error {
	if who.uid == 0 {
		return nil
	}
	now := time.Now() // not the helper's clock, which a test may stop
	a.mu.Lock()
	if a.rates[who] == nil {
		a.forget(now)
		a.rates[who] = &bucket{}
	}
	wait := a.rates[who].take(now, a.perSecond, a.atOnce)
	a.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

// forget drops the buckets that are full again. a.mu is held.
func (a *accounts) forget(now time.Time) {
	if len(a.rates) < maxForgetful {
		return
	}
	for who, b := range a.rates {
		if b.full(now, a.perSecond) {
			delete(a.rates, who)
		}
	}
}

// holding counts the connections of a set that own a lease.
func (h *Helper) holding(of map[*conn]bool) int {
	owners := map[*conn]bool{}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.boxes {
		if of[b.owner] {
			owners[b.owner] = true
		}
	}
	return len(owners)
}

// owns says whether a connection owns a lease.
func (h *Helper) owns(c *conn) bool { return h.holding(map[*conn]bool{c: true}) > 0 }
