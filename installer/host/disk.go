package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxRead bounds ReadFile: nothing minhost reads is larger, and a file that grows while it is
// read must not eat root's memory.
const maxRead = 64 << 20

// Disk is the FS of the running host, or of a folder that stands for one in tests. All paths are
// looked up below an open root folder (os.Root), so a link that leads out of it is an error and
// never a way out.
type Disk struct {
	root *os.Root
	gate Gate
	temp func(dir string) string
}

var _ FS = (*Disk)(nil)

// DiskOption changes how OpenDisk sets a Disk up.
type DiskOption func(*Disk)

// TempIn moves the temporary names of WriteFile and Mkdir: in returns the folder for a target
// folder, on the same file system. macOS reads every file of /etc/resolver as a resolver, so a
// temporary file must not live there even for a moment.
func TempIn(in func(dir string) string) DiskOption {
	return func(d *Disk) { d.temp = in }
}

// OpenDisk opens the file system below root: "/" in production. The gate may be nil.
func OpenDisk(root string, gate Gate, options ...DiskOption) (*Disk, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("open root %s: %w", root, cause(err))
	}
	d := &Disk{root: r, gate: gate, temp: func(dir string) string { return dir }}
	for _, o := range options {
		o(d)
	}
	return d, nil
}

// Close gives the root folder back.
func (d *Disk) Close() error { return d.root.Close() }

// ReadFile returns the content of a regular file of at most 64 MiB.
func (d *Disk) ReadFile(path string) ([]byte, error) {
	f, err := d.openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, cause(err))
	}
	// Room for all of it at once: the program itself is read several times in one run.
	b := bytes.NewBuffer(make([]byte, 0, min(info.Size(), maxRead)+bytes.MinRead))
	if _, err := b.ReadFrom(io.LimitReader(f, maxRead+1)); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, cause(err))
	}
	if b.Len() > maxRead {
		return nil, fmt.Errorf("read %s: larger than %d bytes", path, maxRead)
	}
	return b.Bytes(), nil
}

// openRegular opens without following a link at the end. os.Root resolves links itself and
// ignores O_NOFOLLOW, so the file is looked at before, and must be the same one after.
// O_NONBLOCK: a fifo that took its place in between must not hold root for ever.
func (d *Disk) openRegular(path string) (*os.File, error) {
	rel, err := relative(path)
	if err != nil {
		return nil, err
	}
	before, err := d.root.Lstat(rel)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, cause(err))
	}
	if !before.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w (it is a %s)", path, ErrNotRegular, kind(before.Mode()))
	}
	f, err := d.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, cause(err))
	}
	after, err := f.Stat()
	if err != nil || !os.SameFile(before, after) {
		f.Close()
		return nil, fmt.Errorf("read %s: it was replaced while it was opened", path)
	}
	return f, nil
}

// Lstat tells what is at path, a link as itself.
func (d *Disk) Lstat(path string) (Info, error) {
	rel, err := relative(path)
	if err != nil {
		return Info{}, err
	}
	fi, err := d.root.Lstat(rel)
	if err != nil {
		return Info{}, fmt.Errorf("look at %s: %w", path, cause(err))
	}
	return infoOf(fi), nil
}

// ReadDir returns the names in a folder, sorted.
func (d *Disk) ReadDir(path string) ([]string, error) {
	rel, err := relative(path)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(d.root.FS(), filepath.ToSlash(rel))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path, cause(err))
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Readlink returns the target of a link as it is written.
func (d *Disk) Readlink(path string) (string, error) {
	rel, err := relative(path)
	if err != nil {
		return "", err
	}
	target, err := d.root.Readlink(rel)
	if err != nil {
		return "", fmt.Errorf("read link %s: %w", path, cause(err))
	}
	return target, nil
}

// ReadOnly says whether the file system of path, or of its nearest folder that exists, is mounted
// read-only. It needs no right and writes nothing (access(2) would answer differently for root).
func (d *Disk) ReadOnly(path string) (bool, error) {
	for p := path; ; p = filepath.Dir(p) {
		rel, err := relative(p)
		if err != nil {
			return false, err
		}
		fi, err := d.root.Lstat(rel)
		if errors.Is(err, fs.ErrNotExist) && p != "/" {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("look at %s: %w", p, cause(err))
		}
		if !fi.IsDir() && p != "/" {
			continue
		}
		f, err := d.root.Open(rel)
		if err != nil {
			return false, fmt.Errorf("open %s: %w", p, cause(err))
		}
		defer f.Close()
		return readOnly(f)
	}
}

// ErrNotRegular is returned for a folder, link or device where a regular file is wanted.
var ErrNotRegular = errors.New("not a regular file")

// relative turns an absolute clean path into one below the root.
func relative(path string) (string, error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return "", fmt.Errorf("path %q: not absolute and clean", path)
	}
	if path == "/" {
		return ".", nil
	}
	return path[1:], nil
}

// cause drops the relative path that os.Root puts into its errors; callers name the whole one.
func cause(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "folder"
	case m&fs.ModeSymlink != 0:
		return "link"
	case m&fs.ModeNamedPipe != 0:
		return "fifo"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "file"
}
