package main

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// keepWatchdog tells the service manager again and again that the helper answers, for as long as it
// does: one that hangs is killed and started again, and boxes stay (its leases are files). It asks the
// way a runner would, through the socket. Where no watchdog is set it returns at once.
func keepWatchdog(ctx context.Context, env *environment) {
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil || limit == 0 {
		return
	}
	for every := limit / 3; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		asked, cancel := context.WithTimeout(ctx, every)
		err := env.askHelper(asked)
		cancel()
		if err == nil {
			_, err = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
		}
		if err != nil && ctx.Err() == nil {
			env.Log.Warn("watchdog", "cause", err)
		}
	}
}
