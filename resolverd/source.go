package resolverd

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/gominimal/minhost/resolverd/zonefile"
)

// pollInterval is how often the zone file is looked at besides notification: the folder may not
// exist yet, may be replaced, and a host may be out of inotify instances.
const pollInterval = time.Second

// pace is how long after one change the next is read at the earliest: of those that come faster the last
// counts.
const pace = 4 * time.Millisecond

// source follows the zone file and publishes each zone in it.
type source struct {
	path    string
	bootID  string
	log     *slog.Logger
	publish func(*Zone)
	poll    time.Duration
	beside  *audience // its file is in the same folder

	buf      [32 << 10]byte // between the file and its text
	seen     fs.FileInfo    // of the file last read; nil when there was none
	sum      uint64         // of what it said, for the text itself would be held twice; 0 of what cannot be read
	waste    bool           // the memory of an older zone may still be held
	complain string         // the last complaint, so that each is logged once
}

// seed is for sums of what the file said.
var seed = maphash.MakeSeed()

// load reads the file and publishes what it says. No file, or one of another boot, is an empty
// zone: those leases are gone. A file that cannot be read or understood changes nothing. It tells whether
// the file said something that it did not say when it was read last.
func (s *source) load() bool {
	text, info, err := s.readFile()
	s.seen = info
	none := errors.Is(err, fs.ErrNotExist)
	if err != nil && !none {
		s.sum = 0
		s.stay(err)
		return false
	}
	sum := maphash.Comparable(seed, [2]string{text, fmt.Sprint(none)})
	if sum == s.sum {
		return false
	}
	s.sum = sum
	zone, err := s.zone(text, none)
	if err != nil {
		s.stay(err)
		return true
	}
	if s.complain != "" {
		s.complain = ""
		s.log.Info("the zone file can be read again", "file", s.path)
	}
	s.publish(zone)
	s.waste = true
	s.log.Debug("zone", "names", zone.Len(), "serial", zone.soaSerial())
	return true
}

// stay says once why the zone stays as it was.
func (s *source) stay(err error) {
	if text := err.Error(); text != s.complain {
		s.complain = text
		s.log.Error("the zone stays as it was", "file", s.path, "err", err)
	}
}

func (s *source) zone(text string, none bool) (*Zone, error) {
	if none {
		return NewZone(nil, 0)
	}
	b := newBuilder(strings.Count(text, "\n"), len(text))
	file, err := zonefile.Scan(text, b.add)
	if err != nil {
		return nil, err
	}
	if file.BootID != s.bootID {
		return NewZone(nil, 0)
	}
	return b.zone(uint32(file.Generation)), nil
}

// readFile reads a bounded regular file. The info is of the file that was opened, also with an
// error, as far as it got.
func (s *source) readFile() (string, fs.FileInfo, error) {
	file, err := os.Open(s.path)
	if err != nil {
		return "", nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", nil, err
	}
	if !info.Mode().IsRegular() {
		return "", info, fmt.Errorf("open %s: not a regular file", s.path)
	}
	var text strings.Builder
	text.Grow(min(int(info.Size()), zonefile.MaxBytes+1))
	_, err = io.CopyBuffer(&text, io.LimitReader(file, int64(zonefile.MaxBytes)+1), s.buf[:])
	return text.String(), info, err
}

// changed tells whether the file is another than the one last read.
func (s *source) changed() bool {
	info, err := os.Stat(s.path)
	if err != nil {
		return s.seen != nil
	}
	return s.seen == nil || !os.SameFile(info, s.seen) || info.Size() != s.seen.Size() || !info.ModTime().Equal(s.seen.ModTime())
}

// start begins to watch and then reads the file, so that no change falls between.
func (s *source) start() *watch {
	w := &watch{folder: filepath.Dir(s.path)}
	watcher, err := fsnotify.NewBufferedWatcher(eventBuffer)
	if err != nil {
		s.log.Warn("no notification of zone changes; polling", "every", s.poll, "err", err)
	} else {
		w.Watcher = watcher
	}
	w.renew()
	s.load()
	s.beside.look()
	return w
}

// run publishes changes until ctx ends.
func (s *source) run(ctx context.Context, w *watch) {
	var events chan fsnotify.Event
	var errs chan error
	if w.Watcher != nil {
		events, errs = w.Events, w.Errors
	}
	tick := time.NewTicker(s.poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-events:
			switch filepath.Base(event.Name) { // neighbours come and go all the time
			case filepath.Base(s.path):
				s.follow(ctx, w, events)
			case filepath.Base(s.beside.path):
				s.beside.look()
			}
		case <-errs: // events were lost
			s.load()
		case <-tick.C:
			s.tidy()
			s.beside.look()
			if w.renew() || s.changed() {
				s.load()
			}
		}
	}
}

// follow reads a zone that has changed, and once in a pace again while it goes on changing. Notification is off
// meanwhile: of a thousand changes a second each woke two threads four times, which took a fifth of a core.
func (s *source) follow(ctx context.Context, w *watch, events <-chan fsnotify.Event) {
	drain(events)
	s.load()
	s.beside.look() // its event may have been among those dropped
	wait(ctx, pace)
	if s.load() {
		w.pause()
		for more := true; more && ctx.Err() == nil; more = s.load() {
			s.beside.look()
			wait(ctx, pace)
		}
		w.renew()
		drain(events)
		s.load() // what came before there was notification again
		s.beside.look()
	}
}

// tidy gives the memory of older zones back. The collector would keep it for the next one: after many changes
// of 10,000 names that was a fifth of all that the answerer held, for ever.
func (s *source) tidy() {
	if s.waste {
		s.waste = false
		debug.FreeOSMemory()
	}
}
