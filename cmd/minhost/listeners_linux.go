package main

import (
	"context"
	"log/slog"

	"github.com/gominimal/minhost/installer/helper"
	"github.com/gominimal/minhost/linux/listeners"
)

// listenersPort is what waits on this host as the helper sees it. A UDP socket on a port that the
// kernel gives to clients is taken for a client's.
type listenersPort struct{ *listeners.Lister }

// openListeners never fails: what cannot be opened now is opened at the first question.
func openListeners(log *slog.Logger) listenersPort {
	l, err := listeners.New()
	if err != nil {
		log.Warn("what boxes listen on cannot be told", "cause", err)
	}
	return listenersPort{l}
}

// List implements helper.Listeners.
func (p listenersPort) List(ctx context.Context) ([]helper.Waiting, error) {
	all, err := p.Lister.List(ctx)
	if err != nil {
		return nil, err
	}
	first, last, err := listeners.ClientPorts()
	if err != nil {
		return nil, err
	}
	var out []helper.Waiting
	for _, s := range all {
		if port := s.Local.Port(); s.UDP && port >= first && port <= last {
			continue
		}
		out = append(out, helper.Waiting{UDP: s.UDP, Local: s.Local, Group: s.Cgroup})
	}
	return out, nil
}
