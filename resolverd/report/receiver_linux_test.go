package report

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestListenFrom: the socket is one user's and nobody else's; what arrives is that user's word and not
// root's, also at a receiver that took the place of another.
func TestListenFrom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports.sock")
	for range 2 {
		r, err := ListenFrom(path, os.Getuid())
		if err != nil {
			t.Fatal(err)
		}
		if fi, err := os.Lstat(path); err != nil || fi.Mode() != fs.ModeSocket|0o600 {
			t.Errorf("%v %v", fi.Mode(), err)
		}
		if p := r.sender(nil); p.UID != uint32(os.Getuid()) || p.PID != -1 {
			t.Errorf("sender %+v", p)
		}
		counters, done := make(chan Counters, 1), make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- r.Run(ctx, Handler{Counters: func(c Counters) { counters <- c }}) }()
		s := NewSender(path)
		want := Counters{Address: 3, NoData: 4}
		if !s.Counters(want) {
			t.Error("counters were not sent")
		} else if got := next(t, counters); got != want {
			t.Errorf("%v", got)
		}
		s.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenFrom(file, os.Getuid()); err == nil {
		t.Error("a file that is no socket was replaced")
	}
}
