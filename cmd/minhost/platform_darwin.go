package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/gominimal/minhost/darwin/launchd"
	"github.com/gominimal/minhost/darwin/loopback"
	"github.com/gominimal/minhost/darwin/procs"
	"github.com/gominimal/minhost/installer/host"
)

func newPlatform() platform {
	return macPlatform(macEdges{
		Interfaces: func(gate host.Gate) loopback.Interfaces {
			return loopback.Fallback{First: loopback.Kernel{Gate: gate}, Second: loopback.Ifconfig{Run: host.Exec{Gate: gate}}}
		},
		Activate: launchd.Activate,
		CredOf:   procs.CredOf,
		Libc:     libcLookup,
	})
}

// libcLookup asks getaddrinfo, which Go calls on a Mac without cgo too.
func libcLookup(ctx context.Context, name string) (netip.Addr, error) {
	all, err := (&net.Resolver{PreferGo: false}).LookupNetIP(ctx, "ip4", name)
	if err != nil {
		return netip.Addr{}, err
	}
	if len(all) == 0 {
		return netip.Addr{}, fmt.Errorf("lookup %s: no address", name)
	}
	return all[0].Unmap(), nil
}
