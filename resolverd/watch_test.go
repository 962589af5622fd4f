package resolverd

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// TestNoChangeIsMissed: with notification alone, switched off and on again as changes come fast or slowly, the
// zone that was written last is read, whenever that was.
func TestNoChangeIsMissed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zone")
	replace(t, path, zone(1))
	var serial atomic.Uint32
	s := &source{path: path, bootID: "boot", log: (&logLines{}).logger(), publish: func(z *Zone) { serial.Store(z.serial) }, poll: never, beside: &audience{}}
	w := s.start()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.run(ctx, w); w.close() }()
	defer func() { cancel(); <-done }()
	for i := range uint64(500) {
		replace(t, path, zone(2+i))
		time.Sleep(time.Duration(rand.IntN(int(3 * pace / 2))))
		if rand.IntN(2) == 0 {
			waitFor(t, "change", func() bool { return serial.Load() == uint32(2+i) })
		}
	}
}
