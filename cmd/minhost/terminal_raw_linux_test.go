package main

import (
	"testing"
	"time"

	"github.com/gominimal/minhost/linux/pty"
)

// TestTerminalOfAJobThatStops: between giving the terminal back and the stop itself this program is
// still in front, and must not take it again.
func TestTerminalOfAJobThatStops(t *testing.T) {
	callers, at, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	asked := true
	s, err := openScreen(&asked, at, at)
	if err != nil {
		t.Fatal(err)
	}
	defer s.master.Close()
	program := s.instead(at)
	before, err := pty.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	is := func(want bool) (pty.Mode, bool) {
		now, err := pty.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		return now, (now == before) == want
	}
	s.enter()
	if mode, ok := is(false); !ok {
		t.Fatalf("not raw: %+v", mode)
	}
	over := make(chan struct{})
	go func() { defer close(over); s.typeOn() }()
	s.leave()
	time.Sleep(300 * time.Millisecond) // it looks every 100 ms
	if mode, ok := is(true); !ok {
		t.Errorf("not as it was: %+v", mode)
	}
	s.enter()
	if mode, ok := is(false); !ok {
		t.Errorf("not raw again: %+v", mode)
	}
	s.leave()
	callers.Close() // whose terminal hangs up types no more
	<-over
	program.Close()
	at.Close()
}
