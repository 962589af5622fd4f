package helper

import "time"

// Calls of one account: so many a second in the long run, and so many at once. A runner that starts a box needs
// three; who calls faster waits, nobody is refused.
const (
	callsPerSecond = 2000
	callsAtOnce    = 4000
)

// bucket paces calls: it fills with time and each call takes one out. It may be overdrawn, then who took waits.
// The zero value is full.
type bucket struct {
	taken float64 // since it was full
	at    time.Time
}

// take takes one call at a time and returns how long it has to wait.
func (b *bucket) take(now time.Time, perSecond, atOnce float64) time.Duration {
	if !b.at.IsZero() {
		b.taken = max(0, b.taken-now.Sub(b.at).Seconds()*perSecond)
	}
	b.at = now
	b.taken++
	return time.Duration(max(0, b.taken-atOnce) / perSecond * float64(time.Second))
}

// full says that the bucket need not be remembered.
func (b *bucket) full(now time.Time, perSecond float64) bool {
	return now.Sub(b.at).Seconds()*perSecond >= b.taken
}
