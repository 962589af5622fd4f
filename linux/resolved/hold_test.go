package resolved

import (
	"context"
	"log/slog"
	"strings"
	"testing"
)

func TestHold(t *testing.T) {
	s, h := lab()
	look := func(want string, link bool) {
		t.Helper()
		line, err := s.hold(t.Context())
		if err != nil {
			line = err.Error()
		}
		if !strings.Contains(line, want) || (h.link != nil) != link {
			t.Fatalf("%q, link %v; want %q, %v", line, h.link, want, link)
		}
	}
	uplink := h.servers
	h.servers = nil // early at boot
	look("FallbackDNS=", false)
	h.servers = uplink
	look("glibc: yes", true)
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
	h.link = nil // ip link del min0
	h.state = map[int]State{}
	look("glibc: yes", true)
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

func TestHoldEnds(t *testing.T) {
	s, h := lab()
	var log strings.Builder
	ctx, cancel := context.WithCancel(t.Context())
	readies := 0
	err := s.Hold(ctx, slog.New(slog.NewTextHandler(&log, nil)), func() { readies++; cancel() })
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
