//go:build linux || darwin

package main

import (
	"log/slog"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/helper"
	"github.com/gominimal/minhost/installer/host"
	answers "github.com/gominimal/minhost/resolverd/report"
)

// looked is a lookup in the words of the helper.
func looked(x answers.Lookup) helper.Lookup {
	return helper.Lookup{Number: x.Lease, View: x.View, Protocol: x.Network, From: x.From, Name: x.Name,
		Type: x.TypeText(), Answer: x.Answer.String(), Missed: x.Missed}
}

func badReport(log *slog.Logger) func(answers.Peer, error) {
	return func(p answers.Peer, err error) { log.Debug("report", "uid", p.UID, "pid", p.PID, "cause", err) }
}

// counted is every kind, those with nothing too: who reads a gauge wants to see the zero.
func counted(c answers.Counters) []api.Counter {
	var out []api.Counter
	for kind, n := range c {
		out = append(out, api.Counter{Kind: answers.Kind(kind).String(), Count: int(n)})
	}
	return out
}

// audienceFile is the file that tells the answerer to report every lookup, for a minute from when it was
// written. That it is there says all.
type audienceFile struct {
	fs   host.FS
	path string
}

// Want implements helper.Audience.
func (a audienceFile) Want(yes bool) error {
	if yes {
		return a.fs.WriteFile(a.path, nil, host.Attr{Mode: 0o644})
	}
	return gone(a.fs.Remove(a.path))
}
