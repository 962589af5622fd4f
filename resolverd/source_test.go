package resolverd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/resolverd/zonefile"
)

const never = time.Hour

// TestZoneFollowsFile holds what each state of the file means, by notification alone: polling is
// put off for longer than the test runs.
func TestZoneFollowsFile(t *testing.T) {
	r := start(t, func(s *Server) { s.source.poll = never })
	r.until(t, "web", "NXDOMAIN") // no file yet

	r.publish(t, zone(1, "web 127.0.64.1"))
	r.until(t, "web", "127.0.64.1")

	r.publish(t, zone(2, "web 127.0.64.2", "api.web 127.0.64.3"))
	r.until(t, "web", "127.0.64.2")
	r.until(t, "api.web", "127.0.64.3")
	if got := ask(t, "tcp", r.box.addr, "min.internal. SOA"); !strings.Contains(got, " . 2 5 5 15 5") {
		t.Errorf("the serial is not the generation: %s", got)
	}

	// A broken file changes nothing and is said once; the next good one counts.
	for range 3 {
		r.publish(t, []byte("half a file"))
	}
	waitFor(t, "a complaint", func() bool { return r.log.count("the zone stays as it was") > 0 })
	r.until(t, "web", "127.0.64.2")
	r.publish(t, zone(3, "web 127.0.64.4"))
	r.until(t, "web", "127.0.64.4")
	if n := r.log.count("the zone stays as it was"); n != 1 {
		t.Errorf("%d complaints about one broken file", n)
	}
	if r.log.count("can be read again") != 1 {
		t.Error("no line says that the file is good again")
	}

	// Another boot's leases are gone.
	other := bytes.Replace(zone(9, "web 127.0.64.5"), []byte(" boot "), []byte(" other "), 1)
	if f, err := zonefile.Decode(other); err != nil || f.BootID != "other" {
		t.Fatalf("the test's file is wrong: %v", err)
	}
	r.publish(t, other)
	r.until(t, "web", "NXDOMAIN")

	r.publish(t, zone(10, "web 127.0.64.6"))
	r.until(t, "web", "127.0.64.6")
	if err := os.Remove(r.zonePath()); err != nil {
		t.Fatal(err)
	}
	r.until(t, "web", "NXDOMAIN")
}

// TestNoChangeIsLost: of a burst of changes the last one always counts.
func TestNoChangeIsLost(t *testing.T) {
	r := start(t, func(s *Server) { s.source.poll = never })
	for round := range 20 {
		for i := range 50 {
			r.publish(t, zone(uint64(round*50+i), fmt.Sprintf("web 127.0.64.%d", 1+i)))
		}
		r.until(t, "web", "127.0.64.50")
	}
}

// TestNeighboursAreIgnored: files beside the zone file do not make it be read.
func TestNeighboursAreIgnored(t *testing.T) {
	r := start(t, func(s *Server) { s.source.poll = never })
	r.publish(t, zone(1, "web 127.0.64.1"))
	r.until(t, "web", "127.0.64.1")
	before := r.log.count("msg=zone")
	for i := range 20 {
		if err := os.WriteFile(filepath.Join(r.folder, fmt.Sprint("lease", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.publish(t, zone(2, "web 127.0.64.2"))
	r.until(t, "web", "127.0.64.2")
	// The rename is one event, or two on systems that tell of the old file too.
	if n := r.log.count("msg=zone") - before; n > 2 {
		t.Errorf("the file was read %d times for one change", n)
	}
}

// TestFolderAppearsLater: the answerer may be up before anything has made the state folder, and
// the folder may be made anew. Polling finds it, notification takes over.
func TestFolderAppearsLater(t *testing.T) {
	parent := t.TempDir()
	r := start(t, func(s *Server) {
		s.source.path = filepath.Join(parent, "run", "zone")
		s.source.poll = 10 * time.Millisecond
	})
	r.folder = filepath.Join(parent, "run")
	for i := range 3 {
		r.until(t, "web", "NXDOMAIN")
		if err := os.Mkdir(r.folder, 0o755); err != nil {
			t.Fatal(err)
		}
		r.publish(t, zone(1, fmt.Sprintf("web 127.0.64.%d", 1+i)))
		r.until(t, "web", fmt.Sprintf("127.0.64.%d", 1+i))
		if err := os.RemoveAll(r.folder); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNotificationTakesOver: a folder that polling found is watched from then on, one that was made anew too,
// also where it has the number of the old one, which the kernel has dropped with its watch.
func TestNotificationTakesOver(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	s := &source{path: filepath.Join(folder, "zone"), bootID: "boot", log: (&logLines{}).logger(), publish: func(*Zone) {}, poll: time.Millisecond, beside: &audience{}}
	w := s.start()
	defer w.close()
	told := func() bool {
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer stop()
		s.run(ctx, w)
		drain(w.Events)
		if err := os.WriteFile(filepath.Join(folder, "more"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		select {
		case <-w.Events:
			return true
		case <-time.After(20 * time.Millisecond):
			return false
		}
	}
	for range 3 {
		if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o755)); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "notification", told)
	}
}

// TestPolling: without any notification the file is followed all the same.
func TestPolling(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zone")
	zones := make(chan *Zone, 10)
	s := &source{path: path, bootID: "boot", log: (&logLines{}).logger(), publish: func(z *Zone) { zones <- z }, poll: time.Millisecond, beside: &audience{}}
	s.load()
	if s.changed() {
		t.Error("no file, and yet it changed")
	}
	steps := []struct {
		do   func() error
		want int
	}{
		{func() error { return os.WriteFile(path, zone(1, "web 127.0.64.1"), 0o644) }, 1},
		{func() error {
			if err := os.WriteFile(path+".new", zone(2, "api 127.0.64.1", "web 127.0.64.1"), 0o644); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		}, 2},
		{func() error { return os.Remove(path) }, 0},
	}
	<-zones
	for i, step := range steps {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if !s.changed() {
			t.Fatalf("step %d: not seen", i)
		}
		s.load()
		if s.changed() {
			t.Errorf("step %d: seen again", i)
		}
		if z := <-zones; z.Len() != step.want {
			t.Errorf("step %d: zone of %d names, want %d", i, z.Len(), step.want)
		}
	}
}

// TestUnreadable: a folder in the file's place, or a file too large, is an error and not a zone.
func TestUnreadable(t *testing.T) {
	folder := t.TempDir()
	large := filepath.Join(folder, "large")
	if err := os.WriteFile(large, bytes.Repeat([]byte("x"), zonefile.MaxBytes+2), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{folder: "not a regular file", large: "bytes"} {
		log := &logLines{}
		s := &source{path: path, bootID: "boot", log: log.logger(), publish: func(*Zone) { t.Errorf("%s was published", path) }, beside: &audience{}}
		s.load()
		if log.count(want) != 1 {
			t.Errorf("%s: %s", path, log.text.String())
		}
	}
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s within %s", what, patience)
		}
	}
}
