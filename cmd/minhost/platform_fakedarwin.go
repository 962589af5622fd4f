//go:build linux && fakedarwin

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gominimal/minhost/darwin/loopback"
	"github.com/gominimal/minhost/installer/host"
)

// newPlatform is a Mac whose kernel is the model of verify/fakedarwin: the steps, the helper and the
// answerer are those of a Mac, the programs that they call (ifconfig, launchctl, scutil) are the model's.
// No release is built with this tag; TestRelease looks.
func newPlatform() platform {
	return macPlatform(macEdges{
		Interfaces: func(gate host.Gate) loopback.Interfaces { return loopback.Ifconfig{Run: host.Exec{Gate: gate}} },
		Activate:   fakeActivate,
	})
}

// fakeActivate reads FAKE_LAUNCHD_SOCKETS, "dns-udp=3 dns-tcp=4", of the model's launchd.
func fakeActivate(names ...string) ([]*os.File, error) {
	var files []*os.File
	for _, word := range strings.Fields(os.Getenv("FAKE_LAUNCHD_SOCKETS")) {
		name, number, _ := strings.Cut(word, "=")
		fd, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("socket %q of the model's launchd: %w", word, err)
		}
		for _, want := range names {
			if want == name {
				files = append(files, os.NewFile(uintptr(fd), name))
			}
		}
	}
	return files, nil
}
