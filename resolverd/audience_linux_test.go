package resolverd

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gominimal/minhost/resolverd/report"
)

// TestLookupsAreTold: with the file every lookup of both views and networks is told, without it none.
func TestLookupsAreTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports")
	helper, err := report.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	lookups := make(chan report.Lookup, 99)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- helper.Run(ctx, report.Handler{Admit: func(p report.Peer) bool { return p.PID == int32(os.Getpid()) },
			Lookup: func(l report.Lookup) { lookups <- l }})
	}()
	defer func() { cancel(); <-done }()
	r := start(t, func(s *Server) {
		s.report = report.NewSender(path)
		s.audience.path = filepath.Join(filepath.Dir(s.source.path), "watched")
	})
	everything := func() {
		for _, network := range []string{"udp", "tcp"} {
			ask(t, network, r.host.addr, "minhost.min.internal. A")
			ask(t, network, r.host.addr, "example.com. HTTPS")
			ask(t, network, r.box.addr, "example.com. A")
		}
	}
	everything()
	if r.audience.listens() {
		t.Fatal("lookups are told although nobody asked for that")
	}
	file := filepath.Join(r.folder, "watched")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, r, true)
	everything()
	for _, network := range []string{"udp", "tcp"} {
		for _, want := range []report.Lookup{
			{View: "host", Network: network, Type: 1, Answer: report.Address, Name: "minhost.min.internal"},
			{View: "host", Network: network, Type: 65, Answer: report.Declined, Name: "example.com"},
			{View: "box", Network: network, Type: 1, Answer: report.Outside, Name: "example.com"},
		} {
			select {
			case got := <-lookups:
				got.From = want.From
				if got != want {
					t.Errorf("told %+v, want %+v", got, want)
				}
			case <-time.After(patience):
				t.Fatalf("never told %+v", want)
			}
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	await(t, r, false)
	everything()
	if len(lookups) > 0 {
		t.Errorf("told without the file: %+v", <-lookups)
	}
}

func await(t *testing.T, r *running, listens bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); r.audience.listens() != listens; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("listens: %v", !listens)
		}
	}
}

// TestAudienceLeaves: a minute after the file was written nobody listens, though the file stays, the
// clock is set back and the answerer starts again.
func TestAudienceLeaves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "watched")
	now := time.Now()
	a := &audience{path: path, now: func() time.Time { return now }}
	write := func(age time.Duration) {
		t.Helper()
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
		a.look()
	}
	steps := []struct {
		name    string
		do      func()
		listens bool
	}{
		{"no file", a.look, false},
		{"written", func() { write(0) }, true},
		{"almost a minute later", func() { now = now.Add(59 * time.Second); a.look() }, true},
		{"a minute later", func() { now = now.Add(2 * time.Second); a.look() }, false},
		{"started again", func() { a.seen = nil; a.look() }, false},
		{"written again", func() { write(0) }, true},
		{"written half a minute ago", func() { write(30 * time.Second); now = now.Add(29 * time.Second) }, true},
		{"and it is over", func() { now = now.Add(2 * time.Second) }, false},
		{"written in the future", func() { write(-time.Hour) }, true},
		{"that is a minute too", func() { now = now.Add(61 * time.Second); a.look() }, false},
		{"without a path", func() { write(0); a.path = ""; a.look() }, false},
	}
	for _, s := range steps {
		if s.do(); a.listens() != s.listens {
			t.Fatalf("%s: listens %v", s.name, !s.listens)
		}
	}
}
