package report

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRepaired(t *testing.T) {
	for what, want := range map[string]string{
		"no link min0":            "no link min0",
		"line\nend \x1b[1m é":     "line?end ?[1m ?",
		strings.Repeat("x", 3000): strings.Repeat("x", MaxName),
	} {
		got, err := DecodeRepaired(Repaired{what}.Encode())
		if err != nil || got.What != want {
			t.Errorf("%q: %q, %v", what, got.What, err)
		}
	}
	for _, bad := range []string{"", "minhost-repaired 1 ", "minhost-repaired 2 x", "minhost-repaired 1 a\nb", "minhost-repaired 1 " + strings.Repeat("x", MaxName+1)} {
		if _, err := DecodeRepaired([]byte(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// TestRepairedIsRoots: the answerer's account cannot say that something was repaired, nor root what was refused.
func TestRepairedIsRoots(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports.sock")
	r, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	heard := make(chan string, 10)
	me := uint32(os.Getuid())
	done := make(chan error, 1)
	go func() {
		done <- r.Run(ctx, Handler{
			Admit:    func(Peer) bool { return false },
			Keeper:   func(p Peer) bool { return p.UID == me },
			Repaired: func(x Repaired) { heard <- "repaired " + x.What },
			Refused:  func(Refused) { heard <- "refused" },
			Bad:      func(Peer, error) { heard <- "bad" },
		})
	}()
	s := NewSender(path)
	defer s.Close()
	s.Repaired(Repaired{"no link min0"})
	if got := <-heard; got != "repaired no link min0" {
		t.Error(got)
	}
	s.Refused(1, func() Refused { return Refused{1, "udp", netip.MustParseAddrPort("127.0.0.1:5"), 1, "a.example"} })
	if got := <-heard; got != "bad" {
		t.Errorf("who is not the answerer said what was refused: %s", got)
	}
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
