package resolverd

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// keepWatchdog tells the service manager again and again that every UDP socket is read and answered, for
// as long as that is so: an answerer that hangs is killed and started again, and queries wait in the
// sockets meanwhile. Where no watchdog is set it returns at once.
func (s *Server) keepWatchdog(ctx context.Context, loops []*udpLoop) {
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil || limit == 0 {
		return
	}
	s.guard(ctx, loops, limit/3, func() error {
		_, err := daemon.SdNotify(false, daemon.SdNotifyWatchdog)
		return err
	})
}

// guard looks at the loops every so often and tells when all of them moved.
func (s *Server) guard(ctx context.Context, loops []*udpLoop, every time.Duration, tell func() error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := make([]uint64, len(loops))
	for {
		var err error
		for i, l := range loops {
			if last[i], err = l.moves(ctx, last[i], every); err != nil {
				break
			}
		}
		if err == nil {
			err = tell()
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("watchdog", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// moves returns when the loop has answered another batch than those before. One that nobody asks is sent
// an empty message; one that is flooded needs none, and could lose it.
func (l *udpLoop) moves(ctx context.Context, before uint64, within time.Duration) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if now := l.beats.Load(); now != before {
		return now, nil
	}
	if err := l.Poke(); err != nil {
		return before, fmt.Errorf("udp %s: %w", l.self, err)
	}
	for failed := 0; ; failed++ {
		if now := l.beats.Load(); now != before {
			return now, nil
		}
		if ctx.Err() != nil {
			return before, fmt.Errorf("udp %s: nothing is answered", l.self)
		}
		pause(ctx, failed)
	}
}
