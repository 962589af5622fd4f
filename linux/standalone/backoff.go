package standalone

import "time"

const (
	backoffFirst = 100 * time.Millisecond
	backoffMax   = 5 * time.Second
	// backoffReset is how long a process must have run for its death to count as the first one.
	backoffReset = 10 * time.Second
)

// backoff says how long to wait before a dead process is started again: not at all the first
// time, then 0.1 s and twice that each time, up to 5 s.
type backoff struct{ next time.Duration }

// after returns the wait after a process that was up for that long.
func (b *backoff) after(up time.Duration) time.Duration {
	if up >= backoffReset {
		b.next = 0
	}
	wait := b.next
	b.next = min(max(2*wait, backoffFirst), backoffMax)
	return wait
}
