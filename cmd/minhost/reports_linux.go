package main

import (
	"context"
	"log/slog"

	"github.com/gominimal/minhost/installer/helper"
	answers "github.com/gominimal/minhost/resolverd/report"
)

// hearAnswerer gives the helper what the answerer reports, until the context ends. Without reports
// lookups are refused all the same; only nobody hears of it.
func hearAnswerer(ctx context.Context, path string, h *helper.Helper, log *slog.Logger) {
	r, err := answers.Listen(path)
	if err != nil {
		log.Error("refused lookups will not be told", "cause", err)
		return
	}
	err = r.Run(ctx, answers.Handler{
		Refused: func(x answers.Refused) { h.RefusedName(x.Lease, x.Network, x.From.Addr(), x.Name) },
		Bad:     func(p answers.Peer, err error) { log.Debug("report", "uid", p.UID, "pid", p.PID, "cause", err) },
	})
	if err != nil {
		log.Error("refused lookups are told no more", "cause", err)
	}
}
