package resolved

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestHold(t *testing.T) {
	s, h := lab()
	k := keeping{budget: budget{most: 100, within: time.Minute}}
	put := ""
	look := func(want string, link bool) {
		t.Helper()
		line, broken, err := s.hold(t.Context(), &k, time.Time{})
		put = broken
		if err != nil {
			line = err.Error()
		}
		if !strings.Contains(line, want) || (h.link != nil) != link {
			t.Fatalf("%q, link %v; want %q, %v", line, h.link, want, link)
		}
	}
	mended := func(want string) {
		t.Helper()
		if !strings.Contains(put, want) || (put == "") != (want == "") {
			t.Errorf("put right: %q, want %q", put, want)
		}
	}
	uplink := h.servers
	h.servers = nil // early at boot
	look("FallbackDNS=", false)
	h.servers = uplink
	look("glibc: yes", true)
	mended("") // the first time, there is nothing to mend
	sets := len(h.sets)
	look("glibc: yes", true)
	if len(h.sets) != sets {
		t.Error("configured again although nothing changed")
	}
	h.state = map[int]State{} // resolved restarted with an empty state
	look("glibc: yes", true)
	if len(h.sets) == sets {
		t.Error("not configured again")
	}
	mended("servers of min0 are []")
	h.link = nil // ip link del min0
	h.state = map[int]State{}
	look("glibc: yes", true)
	mended("no link min0")
	h.servers = nil
	look("FallbackDNS=", false)
	h.servers = uplink
	h.running = false
	look("does not run", false)
	h.running = true
	h.link = &Link{Index: 3, Up: true}
	look("minhost did not make", true)
	if h.link.Index != 3 {
		t.Error("a foreign link was replaced")
	}
}

// TestHoldGivesWay: who takes the link away again and again is not fought without end.
func TestHoldGivesWay(t *testing.T) {
	s, h := lab()
	k := keeping{budget: budget{most: 3, within: time.Minute}}
	at := func(second int) (line string) {
		h.link, h.state = nil, map[int]State{}
		line, _, err := s.hold(t.Context(), &k, time.Unix(int64(second), 0))
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	for second := range 3 {
		if at(second); h.link == nil {
			t.Fatalf("second %d: not made again", second)
		}
	}
	if line := at(3); h.link != nil || !strings.Contains(line, "again and again (no link min0)") {
		t.Errorf("a fourth time within a minute: %q, link %v", line, h.link)
	}
	if at(60); h.link == nil {
		t.Error("a minute after the first: not made again")
	}
}

func TestHoldEnds(t *testing.T) {
	s, h := lab()
	var log strings.Builder
	ctx, cancel := context.WithCancel(t.Context())
	readies := 0
	err := s.Hold(ctx, slog.New(slog.NewTextHandler(&log, nil)), func() { readies++; cancel() }, nil)
	if err != nil || readies != 1 || h.link == nil || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("%v, ready %d times, link %v, log %q", err, readies, h.link, log.String())
	}
}

func TestUnmanagedFiles(t *testing.T) {
	want := []string{
		marker + "[Match]\nName=min0 min0-peer\n\n[Link]\nUnmanaged=yes\n",
		marker + "[keyfile]\nunmanaged-devices+=interface-name:min0;interface-name:min0-peer\n",
	}
	for i, f := range UnmanagedFiles("min0") {
		if string(f.Content) != want[i] || f.Mode != 0o644 {
			t.Errorf("%s:\n%s", f.Path, f.Content)
		}
	}
}
