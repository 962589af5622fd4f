// Package packaging carries the files that the binary installs itself: the systemd units, and the scripts of
// OpenRC and sysvinit. They are templates; linux/systemd and linux/initscript render them.
//
// It holds bytes only: it neither renders nor writes, and it knows no host.
package packaging

import (
	"embed"
	"io/fs"
)

//go:embed systemd/*.service systemd/*.socket openrc/minhost-boot.tmpl sysv/minhost-boot.tmpl
var files embed.FS

// Systemd returns the unit templates by name ("minhost-tree.service"), text/template syntax. The
// first line of each is the marker that finalize-install --undo looks for.
func Systemd() fs.FS {
	sub, err := fs.Sub(files, "systemd")
	if err != nil {
		// Only an invalid path fails, and this one is a constant.
		return files
	}
	return sub
}

// InitScripts returns the templates "openrc/minhost-boot.tmpl" and "sysv/minhost-boot.tmpl". The second line of each is the
// marker.
func InitScripts() fs.FS { return files }
