package resolverd

import (
	"context"
	"errors"
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
	write := func(generation uint64) {
		if err := errors.Join(os.WriteFile(path+".new", zone(generation), 0o644), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var zones []uint32
		var at []time.Time
		publish := func(z *Zone) { zones, at = append(zones, z.serial), append(at, time.Now()) }
		s := &source{path: path, bootID: "boot", log: (&logLines{}).logger(), publish: publish, poll: never, beside: &audience{}}
		w := &watch{Watcher: &fsnotify.Watcher{Events: make(chan fsnotify.Event, eventBuffer), Errors: make(chan error)}}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.run(ctx, w) }()
		change := func(generation uint64) time.Time {
			write(generation)
			w.Events <- fsnotify.Event{Name: path, Op: fsnotify.Create}
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
		<-done
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
		w := &watch{Watcher: &fsnotify.Watcher{Events: make(chan fsnotify.Event, eventBuffer), Errors: make(chan error)}}
		if err := os.WriteFile(watched, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		// The bubble's clock is not that of the file system.
		if err := os.Chtimes(watched, time.Now(), time.Now()); err != nil {
			t.Fatal(err)
		}
		w.Events <- fsnotify.Event{Name: path, Op: fsnotify.Create}
		w.Events <- fsnotify.Event{Name: watched, Op: fsnotify.Create}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.run(ctx, w) }()
		synctest.Wait()
		if !a.listens() {
			t.Error("nobody is told of lookups")
		}
		stop()
		<-done
	})
}
