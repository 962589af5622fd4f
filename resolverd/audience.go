package resolverd

import (
	"io/fs"
	"os"
	"sync/atomic"
	"time"
)

// watchedFor is how long every lookup is told once somebody has asked for it.
const watchedFor = time.Minute

// audience is whether somebody wants to hear of every lookup: while there is a file, and for a minute
// from when it was written, whatever has become of its writer.
type audience struct {
	path string // "": nobody ever
	now  func() time.Time

	seen  fs.FileInfo               // of the file that was looked at last; nil when there was none
	until atomic.Pointer[time.Time] // nil: nobody
}

// look looks at the file. The end is reckoned once for each file, so that a clock that is set back makes
// no minute longer.
func (a *audience) look() {
	info, err := os.Stat(a.path)
	if a.path == "" || err != nil {
		a.seen = nil
		a.until.Store(nil)
		return
	}
	if a.seen != nil && os.SameFile(info, a.seen) && info.ModTime().Equal(a.seen.ModTime()) {
		return
	}
	a.seen = info
	now := a.now()
	until := now.Add(watchedFor - max(0, now.Sub(info.ModTime())))
	a.until.Store(&until)
}

// listens tells whether lookups are told now.
func (a *audience) listens() bool {
	until := a.until.Load()
	return until != nil && a.now().Before(*until)
}
