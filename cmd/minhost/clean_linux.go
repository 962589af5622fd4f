package main

import (
	"errors"
	"io/fs"

	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/linux"
)

// cleanRun removes what the helper wrote below the run folder, once it has ended: zone, leases,
// lock, sockets, and what a crash left of any of them.
func cleanRun(l linux.Layout, disk *host.Disk) error {
	var errs []error
	names, err := disk.ReadDir(l.Leases)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, name := range names {
		errs = append(errs, gone(disk.Remove(l.Leases+"/"+name)))
	}
	for _, path := range []string{l.Leases, l.Zone, l.Lookups, l.HelperPID, l.Reports, l.Reports + ".new"} {
		errs = append(errs, gone(disk.Remove(path)), disk.Clean(path))
	}
	return errors.Join(errs...)
}
