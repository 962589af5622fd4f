package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// Mkdir makes one folder with its owner and mode at once: it is made under the temporary name and
// renamed, since a crash between mkdir and chmod would leave a folder that nobody knows to be ours.
func (d *Disk) Mkdir(path string, attr Attr) error {
	return d.mkdir(path, attr, nil)
}

// MkdirWith makes a folder that has files in it from its first moment: either both are there or
// neither, whatever happens.
func (d *Disk) MkdirWith(path string, attr Attr, files ...Content) error {
	return d.mkdir(path, attr, files)
}

// Content is a file by its name in a folder.
type Content struct {
	Name string
	Data []byte
	Attr Attr
}

func (d *Disk) mkdir(path string, attr Attr, files []Content) error {
	if err := d.vacant(path); err != nil {
		return err
	}
	temp := d.tempOf(path)
	err := d.prepare(temp, attr, files)
	if err == nil {
		err = d.vacant(path)
	}
	if err == nil {
		err = d.rename(temp, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("mkdir %s: %w", path, err), d.Clean(path))
	}
	return nil
}

func (d *Disk) vacant(path string) error {
	_, err := d.Lstat(path)
	switch {
	case err == nil:
		return fmt.Errorf("mkdir %s: %w", path, fs.ErrExist)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

func (d *Disk) prepare(temp string, attr Attr, files []Content) error {
	if err := d.discard(temp); err != nil {
		return err
	}
	rel, err := relative(temp)
	if err != nil {
		return err
	}
	if err := d.gate.Pass("mkdir " + temp); err != nil {
		return err
	}
	if err := d.root.Mkdir(rel, 0o700); err != nil {
		return cause(err)
	}
	for _, c := range files {
		if err := d.fill(filepath.Join(temp, c.Name), c.Data, c.Attr); err != nil {
			return err
		}
	}
	f, err := d.root.Open(rel)
	if err != nil {
		return cause(err)
	}
	err = d.own(f, temp, attr)
	if err == nil && len(files) > 0 {
		if err = d.gate.Pass("sync " + temp); err == nil {
			err = f.Sync()
		}
	}
	return errors.Join(err, f.Close())
}

// RemoveWith removes a folder that holds nothing but the named files, in one move: the folder is
// renamed to its temporary name first, so it is never seen half empty. It returns ErrInUse when
// something else is in it, and fs.ErrNotExist when it is not there.
func (d *Disk) RemoveWith(path string, names ...string) error {
	if err := d.Clean(path); err != nil {
		return err
	}
	have, err := d.ReadDir(path)
	if err != nil {
		return err
	}
	for _, h := range have {
		if !slices.Contains(names, h) {
			return fmt.Errorf("remove %s: %w: it holds %s", path, ErrInUse, h)
		}
	}
	relFrom, err := relative(path)
	if err != nil {
		return err
	}
	relTo, err := relative(d.tempOf(path))
	if err != nil {
		return err
	}
	if err := d.gate.Pass("rename " + path); err != nil {
		return err
	}
	if err := d.root.Rename(relFrom, relTo); err != nil {
		return fmt.Errorf("remove %s: %w", path, cause(err))
	}
	return d.Clean(path)
}

// ErrInUse is returned for a folder that holds what is not to be removed with it.
var ErrInUse = errors.New("folder is not empty")

// Clean removes what a crash in WriteFile, Mkdir, MkdirWith or RemoveWith of path left.
func (d *Disk) Clean(path string) error {
	if path == "/" {
		return nil
	}
	return d.discard(d.tempOf(path))
}

// Leftover says whether a crash left something for Clean to remove.
func (d *Disk) Leftover(path string) (bool, error) {
	if path == "/" {
		return false, nil
	}
	_, err := d.Lstat(d.tempOf(path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// discard removes a leftover by its temporary name: a file, or a folder with files in it.
func (d *Disk) discard(temp string) error {
	info, err := d.Lstat(temp)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode.IsDir():
		return d.remove(temp)
	}
	names, err := d.ReadDir(temp)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := d.remove(filepath.Join(temp, n)); err != nil {
			return err
		}
	}
	return d.remove(temp)
}

// tempOf is the one temporary name of a path: hidden, and never the name of anything else.
func (d *Disk) tempOf(path string) string {
	dir, base := filepath.Split(path)
	// 255 octets is the longest name a Linux file system takes.
	if limit := 255 - len(".") - len(tempSuffix); len(base) > limit {
		base = base[:limit]
	}
	return filepath.Join(d.temp(filepath.Clean(dir)), "."+base+tempSuffix)
}

const tempSuffix = ".minhost-new"
