package main

import (
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/linux/resolved"
	"github.com/gominimal/minhost/linux/systemd"
)

// namesStep makes the host's own resolver ask the answerer, where it can.
func namesStep(gate host.Gate) *resolved.NamesStep {
	return &resolved.NamesStep{
		Params: resolved.DefaultParams(), Gate: gate,
		Facts: func() (resolved.Facts, error) { return resolved.HostFacts(systemd.HostEnv()) },
		Links: resolved.Netlink{}, Bus: resolved.SystemBus(), Ask: resolved.AskLocal,
	}
}
