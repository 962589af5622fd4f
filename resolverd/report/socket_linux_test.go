package report

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var example = Refused{Lease: 7, Network: "udp", From: netip.MustParseAddrPort("127.0.0.1:9"), Type: 1, Name: "example.com"}

// receive runs a receiver whose handler admits whom admit says, until stop.
func receive(t *testing.T, path string, admit func(Peer) bool) (refused chan Refused, counters chan Counters, bad chan error, stop func()) {
	t.Helper()
	r, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	refused, counters, bad = make(chan Refused, 9), make(chan Counters, 9), make(chan error, 9)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- r.Run(ctx, Handler{Admit: admit, Refused: func(r Refused) { refused <- r },
			Counters: func(c Counters) { counters <- c }, Bad: func(_ Peer, err error) { bad <- err }})
	}()
	return refused, counters, bad, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

func next[T any](t *testing.T, from chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(10 * time.Second):
		t.Fatal("nothing arrived")
		panic("")
	}
}

// TestHelperComesAndGoes: reports arrive, also at a receiver that took the place of another; while
// there is none they are counted.
func TestHelperComesAndGoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.sock")
	s := NewSender(path)
	defer s.Close()
	tell := func() { s.Refused(example.Lease, func() Refused { return example }) }
	tell()
	if s.Dropped() != 1 || s.Counters(Counters{}) {
		t.Errorf("%d dropped without a helper, want 1", s.Dropped())
	}
	own := func(p Peer) bool { return p.UID == uint32(os.Getuid()) && p.PID == int32(os.Getpid()) }
	for range 2 {
		refused, counters, _, stop := receive(t, path, own)
		tell()
		if got := next(t, refused); got != example {
			t.Errorf("%+v", got)
		}
		if want := (Counters{Address: 9}); !s.Counters(want) || next(t, counters) != want {
			t.Error("counters did not arrive")
		}
		stop()
	}
	tell()
	if s.Dropped() != 2 {
		t.Errorf("%d dropped, want 2", s.Dropped())
	}
}

// TestOthersAreNotBelieved: a report counts only from a user that can be the answerer's.
func TestOthersAreNotBelieved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.sock")
	refused, _, bad, stop := receive(t, path, nil)
	s := NewSender(path)
	defer s.Close()
	s.Refused(example.Lease, func() Refused { return example })
	next(t, bad)
	stop()
	if len(refused) != 0 {
		t.Error("a forged report was taken")
	}
	for uid, want := range map[uint32]bool{0: false, 1000: false, 61183: false, 61184: true, 61353: true, 65519: true, 65534: false, ^uint32(0): false} {
		if (Peer{UID: uid}).Answerer() != want {
			t.Errorf("user %d: want %v", uid, want)
		}
	}
}

// TestSenderNeverWaits: a helper that does not read costs the reports and no time.
func TestSenderNeverWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.sock")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s := NewSender(path)
	defer s.Close()
	done := make(chan bool)
	go func() {
		for lease := range uint16(totalBurst) { // the queue of a socket holds 10 to some hundred
			s.Refused(lease, func() Refused { return example })
		}
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the sender waits")
	}
	if s.Dropped() == 0 {
		t.Error("nothing was dropped")
	}
}

// TestNothingElseIsReplaced: a file at the path is left alone.
func TestNothingElseIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.sock")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path); err == nil {
		t.Error("a file was replaced")
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "mine" {
		t.Errorf("%q, %v", got, err)
	}
}
