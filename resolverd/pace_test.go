package resolverd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestPace: one change is read at once. Of a thousand a second no more than the pace allows are, each read
// is at most that late, and the last change counts. The clock is the test's own.
func TestPace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zone")
	synctest.Test(t, func(t *testing.T) {
		var zones []uint32
		var at []time.Time
		publish := func(z *Zone) { zones, at = append(zones, z.serial), append(at, time.Now()) }
		s := &source{path: path, bootID: "boot", log: (&logLines{}).logger(), publish: publish, poll: never, beside: &audience{}}
		w, stop := following(t, s)
		change := func(generation uint64) time.Time {
			replace(t, path, zone(generation))
			select {
			case w.Events <- fsnotify.Event{Name: path, Op: fsnotify.Create}:
			default: // nobody reads events while changes come fast
			}
			synctest.Wait()
			return time.Now()
		}
		if now := change(1); len(zones) != 1 || at[0] != now {
			t.Fatalf("a single change was read %d times, at %v, not at once", len(zones), at)
		}
		time.Sleep(time.Second)
		began := time.Now()
		const changes = 1000
		for i := range uint64(changes) {
			change(2 + i)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(pace)
		synctest.Wait()
		if most := 2 + int(time.Since(began)/pace); len(zones) > most || len(zones) < most/2 {
			t.Errorf("%d changes were read %d times, at most %d", changes, len(zones), most)
		}
		for i, serial := range zones[1:] {
			if late := at[i+1].Sub(began.Add(time.Duration(serial-2) * time.Millisecond)); late < 0 || late > pace {
				t.Fatalf("change %d was read after %v", serial, late)
			}
		}
		if last := zones[len(zones)-1]; last != 1+changes {
			t.Errorf("the last zone is %d, want %d", last, 1+changes)
		}
		stop()
	})
}

// TestWatchedBesideAChange: the file that asks for lookups is seen also when its event came right behind one
// of the zone, with which it is dropped.
func TestWatchedBesideAChange(t *testing.T) {
	folder := t.TempDir()
	path, watched := filepath.Join(folder, "zone"), filepath.Join(folder, "watched")
	synctest.Test(t, func(t *testing.T) {
		a := &audience{path: watched, now: time.Now}
		s := &source{path: path, bootID: "boot", log: (&logLines{}).logger(), publish: func(*Zone) {}, poll: never, beside: a}
		w, stop := following(t, s)
		defer stop()
		beginWatch(t, watched)
		w.Events <- fsnotify.Event{Name: path, Op: fsnotify.Create}
		w.Events <- fsnotify.Event{Name: watched, Op: fsnotify.Create}
		synctest.Wait()
		if !a.listens() {
			t.Error("nobody is told of lookups")
		}
	})
}

// TestWatchedAmongChanges: the file that asks for lookups is seen also while the zone goes on changing, when
// there is no notification.
func TestWatchedAmongChanges(t *testing.T) {
	folder := t.TempDir()
	path, watched := filepath.Join(folder, "zone"), filepath.Join(folder, "watched")
	synctest.Test(t, func(t *testing.T) {
		a := &audience{path: watched, now: time.Now}
		s := &source{path: path, bootID: "boot", log: (&logLines{}).logger(), publish: func(*Zone) {}, poll: never, beside: a}
		w, stop := following(t, s)
		defer stop()
		for i := range 100 {
			replace(t, path, fmt.Append(nil, i))
			switch i {
			case 0:
				w.Events <- fsnotify.Event{Name: path, Op: fsnotify.Create}
			case 50:
				beginWatch(t, watched)
			}
			time.Sleep(time.Millisecond)
		}
		if !a.listens() {
			t.Error("nobody is told of lookups")
		}
	})
}

// replace writes the file as the helper does: the old text or the new one is there at any time.
func replace(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path+".new", text, 0o644), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

// following runs s in the bubble, told of what is sent to the watch's events, until stop.
func following(t *testing.T, s *source) (w *watch, stop func()) {
	w = &watch{Watcher: &fsnotify.Watcher{Events: make(chan fsnotify.Event, eventBuffer), Errors: make(chan error)}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.run(ctx, w) }()
	return w, func() { cancel(); <-done }
}

// beginWatch makes the file that asks for lookups. The bubble's clock is not that of the file system.
func beginWatch(t *testing.T, watched string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(watched, nil, 0o600), os.Chtimes(watched, time.Now(), time.Now())); err != nil {
		t.Fatal(err)
	}
}
