package host

import (
	"context"
	"time"
)

// Clock is time as steps see it, so that tests need not wait.
type Clock interface {
	Now() time.Time
	// Sleep returns early with the context's error.
	Sleep(context.Context, time.Duration) error
}

// SystemClock is the clock of the host.
type SystemClock struct{}

// Now is the time of day, with the monotonic reading.
func (SystemClock) Now() time.Time { return time.Now() }

// Sleep waits, or returns early with the context's error.
func (SystemClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
