package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const settable = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// WriteFile replaces path atomically. The temporary name is always the same for a path, so a
// crash leaves at most one file behind, and the next WriteFile, Remove or Clean of that path
// takes it away.
func (d *Disk) WriteFile(path string, data []byte, attr Attr) error {
	if err := d.replaceable(path); err != nil {
		return err
	}
	temp := d.tempOf(path)
	if err := d.fill(temp, data, attr); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), d.Clean(path))
	}
	if err := d.replaceable(path); err != nil {
		return errors.Join(err, d.Clean(path))
	}
	if err := d.rename(temp, path); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), d.Clean(path))
	}
	return nil
}

// replaceable refuses what WriteFile must not replace.
func (d *Disk) replaceable(path string) error {
	info, err := d.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode.IsRegular():
		return fmt.Errorf("write %s: %w (it is a %s); look: ls -ld %s", path, ErrNotRegular, kind(info.Mode), quote(path))
	}
	return nil
}

// fill makes a new file with data, owner and mode, on the disk when it returns.
func (d *Disk) fill(path string, data []byte, attr Attr) (err error) {
	if err := d.discard(path); err != nil {
		return err
	}
	rel, err := relative(path)
	if err != nil {
		return err
	}
	var f *os.File
	steps := []struct {
		change string
		do     func() error
	}{
		{"create " + path, func() (err error) {
			f, err = d.root.OpenFile(rel, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			return err
		}},
		{"write " + path, func() error { _, err := f.Write(data); return err }},
		{"", func() error { return d.own(f, path, attr) }},
		{"sync " + path, func() error { return f.Sync() }},
	}
	defer func() {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	for _, s := range steps {
		if s.change != "" {
			if err := d.gate.Pass(s.change); err != nil {
				return err
			}
		}
		if err := s.do(); err != nil {
			return cause(err)
		}
	}
	return nil
}

// own sets owner, then mode (chown clears set-id bits), each only where it differs. A negative
// owner or group is left as it is.
func (d *Disk) own(f *os.File, path string, attr Attr) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	have := infoOf(fi)
	uid, gid := attr.UID, attr.GID
	if (uid >= 0 && uid != have.UID) || (gid >= 0 && gid != have.GID) {
		if err := d.gate.Pass("chown " + path); err != nil {
			return err
		}
		if err := f.Chown(uid, gid); err != nil {
			return err
		}
	}
	if have.Mode&settable == attr.Mode&settable {
		return nil
	}
	if err := d.gate.Pass("chmod " + path); err != nil {
		return err
	}
	return f.Chmod(attr.Mode & settable)
}

// rename moves from over to and makes the move durable.
func (d *Disk) rename(from, to string) error {
	relFrom, err := relative(from)
	if err != nil {
		return err
	}
	relTo, err := relative(to)
	if err != nil {
		return err
	}
	if err := d.gate.Pass("rename " + to); err != nil {
		return err
	}
	if err := d.root.Rename(relFrom, relTo); err != nil {
		return cause(err)
	}
	return d.syncDir(filepath.Dir(to))
}

func (d *Disk) syncDir(dir string) error {
	rel, err := relative(dir)
	if err != nil {
		return err
	}
	if err := d.gate.Pass("sync " + dir); err != nil {
		return err
	}
	f, err := d.root.Open(rel)
	if err != nil {
		return cause(err)
	}
	return errors.Join(f.Sync(), f.Close())
}

// Remove removes a file, a link or an empty folder, and the temporary file that a crash may have
// left for path.
func (d *Disk) Remove(path string) error {
	if err := d.Clean(path); err != nil {
		return err
	}
	return d.remove(path)
}

func (d *Disk) remove(path string) error {
	rel, err := relative(path)
	if err != nil {
		return err
	}
	if _, err := d.root.Lstat(rel); err != nil {
		return fmt.Errorf("remove %s: %w", path, cause(err))
	}
	if err := d.gate.Pass("remove " + path); err != nil {
		return err
	}
	if err := d.root.Remove(rel); err != nil {
		return fmt.Errorf("remove %s: %w", path, cause(err))
	}
	return d.syncDir(filepath.Dir(path))
}

// Symlink makes a link; fs.ErrExist when something is there.
func (d *Disk) Symlink(target, path string) error {
	rel, err := relative(path)
	if err != nil {
		return err
	}
	if err := d.gate.Pass("symlink " + path); err != nil {
		return err
	}
	if err := d.root.Symlink(target, rel); err != nil {
		return fmt.Errorf("link %s: %w", path, cause(err))
	}
	return d.syncDir(filepath.Dir(path))
}
