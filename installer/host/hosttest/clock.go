package hosttest

import (
	"context"
	"sync"
	"time"
)

// Clock is a host.Clock that goes on by Sleep only, at once.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock starts at a time.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now is the time that the sleeps have come to.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Sleep moves the clock on and returns at once.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return nil
}
