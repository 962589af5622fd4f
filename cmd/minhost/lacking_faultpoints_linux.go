//go:build faultpoints

package main

import (
	"errors"
	"os"

	"github.com/gominimal/minhost/linux/belt"
)

// withoutBelt is a file that makes this host one whose kernel can hold no belt. Never part of a release.
const withoutBelt = "/etc/minhost/test-without-belt"

func lacking() func() error {
	return func() error {
		if _, err := os.Stat(withoutBelt); err == nil {
			return errors.New("a test says that this kernel has no cgroup BPF")
		}
		return belt.Lacking()
	}
}
