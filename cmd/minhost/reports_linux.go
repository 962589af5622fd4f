package main

import (
	"context"
	"log/slog"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/helper"
	"github.com/gominimal/minhost/linux/cut"
	"github.com/gominimal/minhost/resolverd"
	answers "github.com/gominimal/minhost/resolverd/report"
)

// hearAnswerer gives the helper what the answerer reports, until the context ends. Without reports
// lookups are refused all the same; only nobody hears of it.
func hearAnswerer(ctx context.Context, path string, h *helper.Helper, flows *cut.Cutter, log *slog.Logger) {
	r, err := answers.Listen(path)
	if err != nil {
		log.Error("refused lookups will not be told", "cause", err)
		return
	}
	err = r.Run(ctx, answers.Handler{
		Refused: func(x answers.Refused) {
			if x.Lease == 0 {
				x.Lease = asker(ctx, flows, x.Network, x.From, log)
			}
			h.RefusedName(x.Lease, x.Network, x.From.Addr(), x.Name)
		},
		Lookup: func(x answers.Lookup) {
			if x.Lease == 0 && x.View == resolverd.BoxView.String() {
				x.Lease = asker(ctx, flows, x.Network, x.From, log)
			}
			h.LookedUp(looked(x))
		},
		Repaired: func(x answers.Repaired) { h.Repaired(x.What) },
		Counters: func(c answers.Counters) { h.Answered(counted(c)) },
		Bad:      badReport(log),
	})
	if err != nil {
		log.Error("refused lookups are told no more", "cause", err)
	}
}

// asker finds out whose lookup it was where the answerer could not tell: over TCP, under systemd
// (SO_RCVMARK takes CAP_NET_RAW, and the answerer has no capability), before Linux 5.19. The flow is still
// tracked; only confined boxes' lookups come to the box view.
func asker(ctx context.Context, flows *cut.Cutter, network string, from netip.AddrPort, log *slog.Logger) uint16 {
	protocol, view := uint8(unix.IPPROTO_UDP), netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if network == "tcp" {
		protocol = unix.IPPROTO_TCP
	}
	if from.Addr().Is6() {
		view = netip.IPv6Loopback()
	}
	number, err := flows.Asker(ctx, protocol, from, netip.AddrPortFrom(view, resolverd.DefaultBoxPort))
	if err != nil {
		log.Debug("whose lookup", "cause", err)
	}
	return number
}
