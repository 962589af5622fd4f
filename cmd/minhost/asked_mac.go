//go:build darwin || fakedarwin

package main

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/gominimal/minhost/installer/api"
)

const (
	// tellingWait bounds the wait for the answerer to notice that somebody wants to hear of lookups.
	tellingWait = 3 * time.Second
	// askedWait bounds the wait for word of a lookup that is over.
	askedWait = time.Second
)

// macAsked has the system look up a name that nobody knows, and hears from the helper whether the question
// came to the answerer. Nobody but root is told of the host's lookups: for others it is not known.
func macAsked(env *environment) func(context.Context, func(context.Context, string)) (asked, known bool) {
	return func(ctx context.Context, look func(context.Context, string)) (asked, known bool) {
		c, err := env.Dial(ctx, env.Socket)
		if err != nil {
			return false, false
		}
		defer c.Close()
		ctx, cancel := context.WithCancel(ctx)
		h := &lookups{}
		var wg sync.WaitGroup
		wg.Go(func() { _ = c.Watch(ctx, api.WatchIn{Lookups: true}, h.hear) }) // nothing is heard then
		defer wg.Wait()
		defer cancel()
		told := func() bool {
			_ = macAnswers(ctx) // asks it directly
			return h.any()
		}
		if !soon(ctx, tellingWait, told) {
			return false, false
		}
		name := strings.ToLower(rand.Text()) + "." + macZone().Name
		look(ctx, name)
		return soon(ctx, askedWait, func() bool { return h.of(name) }), true
	}
}

// lookups are the names whose lookups were told.
type lookups struct {
	mu    sync.Mutex
	names map[string]bool
}

func (h *lookups) hear(e api.Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.Lookup != nil {
		if h.names == nil {
			h.names = map[string]bool{}
		}
		h.names[strings.ToLower(e.Lookup.Name)] = true
	}
	return nil
}

func (h *lookups) any() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.names) > 0
}

func (h *lookups) of(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.names[name]
}

// soon asks until the answer is yes, and for no longer than limit.
func soon(ctx context.Context, limit time.Duration, ask func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !ask() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return true
}
