// Package host holds the edges that both systems share: files, programs, the clock. Each does one
// thing to the host and can be cut by a Gate, so that tests can crash between any two changes.
//
// It decides nothing and knows no path of minhost; steps do.
package host

import (
	"io/fs"
	"time"
)

// Gate is asked before every change to the host, with one word for the change ("write /etc/x",
// "mkdir /run/minhost", "cgroup mkdir boxes"). An error stops the change and is returned by the
// edge. Production passes nil: no gate.
type Gate func(change string) error

// Pass asks the gate; a nil gate lets everything through.
func (g Gate) Pass(change string) error {
	if g == nil {
		return nil
	}
	return g(change)
}

// Attr are the owner and mode of a file or folder.
type Attr struct {
	UID, GID int
	Mode     fs.FileMode
}

// Info is what Lstat tells.
type Info struct {
	Attr
	Size    int64
	ModTime time.Time
}

// FS is the file system as root sees it. Paths are absolute and clean. No call follows a symbolic
// link in the last component; a parent that is a link is refused by Trusted, not here.
type FS interface {
	// ReadFile returns at most 64 MiB.
	ReadFile(path string) ([]byte, error)
	Lstat(path string) (Info, error)
	ReadDir(path string) ([]string, error)
	// WriteFile replaces path atomically: temporary file in the same folder, owner and mode set,
	// fsync, rename, fsync of the folder. It refuses to replace what is not a regular file.
	WriteFile(path string, data []byte, attr Attr) error
	// Mkdir makes one folder; the parent must exist.
	Mkdir(path string, attr Attr) error
	// Remove removes a file, a link or an empty folder. fs.ErrNotExist when it is not there.
	Remove(path string) error
	Symlink(target, path string) error
	Readlink(path string) (string, error)
}
