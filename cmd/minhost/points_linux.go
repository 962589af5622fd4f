//go:build !faultpoints

package main

import (
	"github.com/gominimal/minhost/installer/helper"
	"github.com/gominimal/minhost/installer/host"
)

// helperGate and withPoints are where tests end the helper, hold it up, or have a change fail
// (points_faultpoints_linux.go). This program has no such place.
func helperGate(string) host.Gate { return nil }

func withPoints(c helper.Config, _ host.Gate) helper.Config { return c }
