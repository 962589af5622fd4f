package filestep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
)

// maxPrior bounds what goes into the journal: it is written anew at every change.
const maxPrior = 1 << 20

// prior is what was there before the first change, as the journal keeps it.
type prior struct {
	File *priorFile `json:"file,omitempty"`
	// Folders are those that were not there, outermost first.
	Folders []string `json:"folders,omitempty"`
}

type priorFile struct {
	Content []byte      `json:"content"`
	UID     int         `json:"uid"`
	GID     int         `json:"gid"`
	Mode    fs.FileMode `json:"mode"`
}

func (p *priorFile) attr() host.Attr { return host.Attr{UID: p.UID, GID: p.GID, Mode: p.Mode} }

// made are the hashes that the file may have without anybody having edited it: what the step
// writes, and what it had written before, until the new bytes are in place.
type made struct {
	SHA256 []string `json:"sha256"`
}

// found is what is at the path.
type found struct {
	there, regular bool
	content        []byte
	attr           host.Attr
}

func (s *Step) look() (found, error) {
	info, err := s.fs.Lstat(s.spec.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return found{}, nil
	}
	if err != nil {
		return found{}, err
	}
	have := found{there: true, regular: info.Mode.IsRegular(), attr: info.Attr.Settable()}
	if have.regular {
		have.content, err = s.fs.ReadFile(s.spec.Path)
	}
	return have, err
}

// Apply writes the file, and the folders above it that are missing.
func (s *Step) Apply(_ context.Context, rec *installer.Record) error {
	have, err := s.look()
	if err != nil {
		return err
	}
	if state, detail := s.compare(have); state == installer.Foreign {
		return fmt.Errorf("%s: it came between probe and change; look: ls -ld %s", detail, installer.Quote(s.spec.Path))
	}
	folders, err := s.missingFolders()
	if err != nil {
		return err
	}
	if err := s.keep(rec, have, folders); err != nil {
		return err
	}
	if err := s.note(rec, have); err != nil {
		return err
	}
	for _, dir := range folders {
		if err := s.fs.Mkdir(dir, s.spec.Folder); err != nil {
			return err
		}
	}
	return s.fs.WriteFile(s.spec.Path, s.spec.Content, s.spec.Attr)
}

func (s *Step) keep(rec *installer.Record, have found, folders []string) error {
	p := prior{Folders: folders}
	if have.there && !s.spec.KeepNothing {
		if len(have.content) > maxPrior {
			return fmt.Errorf("file %s: %d bytes are too many to keep for undo; move it away first", s.spec.Path, len(have.content))
		}
		p.File = &priorFile{Content: have.content, UID: have.attr.UID, GID: have.attr.GID, Mode: have.attr.Mode}
	}
	return rec.Keep(p)
}

func (s *Step) note(rec *installer.Record, have found) error {
	var before made
	if _, err := rec.Noted(&before); err != nil {
		return fmt.Errorf("file %s: journal entry: %w", s.spec.Path, err)
	}
	m := made{SHA256: []string{digest(s.spec.Content)}}
	now := digest(have.content)
	if have.there && now != m.SHA256[0] && (s.spec.KeepNothing || slices.Contains(before.SHA256, now)) {
		m.SHA256 = append(m.SHA256, now)
	}
	return rec.Note(m)
}

// missingFolders lists the folders above Path that are not there, outermost first.
func (s *Step) missingFolders() ([]string, error) {
	var missing []string
	for dir := filepath.Dir(s.spec.Path); ; dir = filepath.Dir(dir) {
		_, err := s.fs.Lstat(dir)
		switch {
		case err == nil:
			slices.Reverse(missing)
			return missing, nil
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		missing = append(missing, dir)
	}
}

// Undo gives back the file that was there before, or removes the one that Apply made, then the
// folders that Apply made, as far as they are empty. A file that somebody changed since stays, and
// is an error.
func (s *Step) Undo(_ context.Context, rec installer.Record) error {
	var before prior
	ok, err := rec.Kept(&before)
	if err != nil {
		return fmt.Errorf("file %s: journal entry: %w", s.spec.Path, err)
	}
	if !ok {
		return nil // cut off before the first change
	}
	var m made
	if _, err := rec.Noted(&m); err != nil {
		return fmt.Errorf("file %s: journal entry: %w", s.spec.Path, err)
	}
	if err := s.clean(s.spec.Path); err != nil {
		return err
	}
	if err := s.undoFile(before.File, m); err != nil {
		return err
	}
	return s.undoFolders(before.Folders)
}

func (s *Step) undoFile(before *priorFile, m made) error {
	have, err := s.look()
	switch {
	case err != nil:
		return err
	case before == nil && !have.there:
		return nil
	case before != nil && have.regular && bytes.Equal(have.content, before.Content):
		if have.attr == before.attr() {
			return nil
		}
	case have.there && !(have.regular && slices.Contains(m.SHA256, digest(have.content))):
		return fmt.Errorf("file %s: somebody changed it after minhost wrote it, so it stays; "+
			"look: cat %[2]s; when it may go: rm %[2]s", s.spec.Path, installer.Quote(s.spec.Path))
	}
	if before == nil {
		return s.fs.Remove(s.spec.Path)
	}
	return s.fs.WriteFile(s.spec.Path, before.Content, before.attr())
}

func (s *Step) undoFolders(folders []string) error {
	for _, dir := range slices.Backward(folders) {
		if err := s.clean(dir); err != nil {
			return err
		}
		names, err := s.fs.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if len(names) > 0 {
			return nil // somebody uses it by now
		}
		if err := s.fs.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// clean removes the temporary name that a crash left, on file systems that have one.
func (s *Step) clean(path string) error {
	c, ok := s.fs.(interface{ Clean(string) error })
	if !ok {
		return nil
	}
	if err := c.Clean(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (s *Step) leftover() (bool, error) {
	l, ok := s.fs.(interface{ Leftover(string) (bool, error) })
	if !ok {
		return false, nil
	}
	return l.Leftover(s.spec.Path)
}
