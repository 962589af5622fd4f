package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// StoreFS is what a Store needs of the file system: Disk has it.
type StoreFS interface {
	FS
	Clean(path string) error
	MkdirWith(path string, attr Attr, files ...Content) error
	RemoveWith(path string, names ...string) error
}

// Store keeps one durable file of root's, and the folder that holds it. A folder that Save made
// goes with the file; one that was there before stays.
type Store struct {
	fs   StoreFS
	path string
}

// madeName marks a folder that Save made. It is there from the folder's first moment.
const madeName = ".made-by-minhost"

// NewStore returns the store of path; the parent of its folder must exist.
func NewStore(fsys StoreFS, path string) *Store { return &Store{fs: fsys, path: path} }

// Name is the path of the file.
func (s *Store) Name() string { return s.path }

// Load returns the bytes of the last Save, or fs.ErrNotExist.
func (s *Store) Load() ([]byte, error) {
	if info, err := s.fs.Lstat(filepath.Dir(s.path)); err == nil && !info.Mode.IsDir() {
		return nil, fmt.Errorf("read %s: its parent is a %s", s.path, kind(info.Mode))
	}
	return s.fs.ReadFile(s.path)
}

// Save replaces the bytes durably (root, 0600, in a folder 0700).
func (s *Store) Save(b []byte) error {
	dir, name := filepath.Dir(s.path), filepath.Base(s.path)
	_, err := s.fs.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.fs.MkdirWith(dir, Attr{Mode: 0o700},
			Content{Name: madeName, Attr: Attr{Mode: 0o600}},
			Content{Name: name, Data: b, Attr: Attr{Mode: 0o600}})
	case err != nil:
		return err
	}
	return s.fs.WriteFile(s.path, b, Attr{Mode: 0o600})
}

// Remove removes the file, what a crash left of it, and the folder if Save made it and nothing
// else is in it. Nothing there is not an error.
func (s *Store) Remove() error {
	dir := filepath.Dir(s.path)
	if err := s.fs.Clean(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := s.fs.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := s.fs.Clean(s.path); err != nil {
		return err
	}
	marker := filepath.Join(dir, madeName)
	_, err := s.fs.Lstat(marker)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ignoreMissing(s.fs.Remove(s.path))
	case err != nil:
		return err
	}
	err = s.fs.RemoveWith(dir, madeName, filepath.Base(s.path))
	if errors.Is(err, ErrInUse) {
		return errors.Join(ignoreMissing(s.fs.Remove(s.path)), ignoreMissing(s.fs.Remove(marker)))
	}
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
