//go:build unix

package main

import (
	"context"
	"sync"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
)

// hearTime is how long what a program was refused may be on its way to us when it has ended.
const hearTime = 50 * time.Millisecond

// hearing collects what a box is refused while a joined program runs. The end of the box tells its owner; who
// joins it hears it here.
type hearing struct {
	client *client.Client
	stop   context.CancelFunc

	mu       sync.Mutex
	refusals []api.Refusal
}

// hear begins to listen, and keeps the connection for it: the session needs another one to start the program, and
// none while it runs.
func (s *session) hear(ctx context.Context) {
	// Not the context of the start, which ends with it.
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.heard, s.client = &hearing{client: s.client, stop: stop}, nil
	go s.heard.client.Watch(life, api.WatchIn{Lease: s.plan.Lease}, s.heard.take)
}

func (h *hearing) take(e api.Event) error {
	if e.Refusal != nil {
		h.mu.Lock()
		h.refusals = append(h.refusals, *e.Refusal)
		h.mu.Unlock()
	}
	return nil
}

// tellHeard ends the listening and says what was refused.
func (s *session) tellHeard() {
	if s.client != nil {
		defer s.client.Close()
	}
	if s.heard == nil {
		return
	}
	if s.child != nil && s.child.Status() != 0 {
		time.Sleep(hearTime)
	}
	s.heard.stop()
	s.heard.client.Close()
	s.heard.mu.Lock()
	defer s.heard.mu.Unlock()
	for _, line := range refusalLines(s.heard.refusals, "the "+string(s.way.kind)+" of "+s.plan.Name) {
		s.tell("%s", line)
	}
}
