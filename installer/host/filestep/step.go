package filestep

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"unicode/utf8"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
)

// Spec is a wanted file.
type Spec struct {
	ID       installer.ID
	Describe string
	Loses    string // what the operator does without while it is not there
	Lifetime installer.Lifetime
	Optional bool

	Path    string // absolute and clean
	Content []byte
	Attr    host.Attr
	// Folder is the owner and mode of folders that have to be made above Path; the zero value
	// means root, 0755.
	Folder host.Attr

	// Marker is in the first KiB of every file of this kind that minhost ever wrote: a file with
	// other bytes that has it is Drifted, one that has not is Foreign.
	Marker string
	// Ours replaces Marker for what cannot carry one (a program). Without both, every file with
	// other bytes, owner or mode is Foreign.
	Ours func(content []byte) bool
	// Private is set for a file that only root can look at.
	Private bool
	// KeepNothing is for files like the program itself: an older one that is ours is not given
	// back by Undo but removed, and does not go into the journal.
	KeepNothing bool
}

// Step is the installer.Step of one Spec.
type Step struct {
	fs   host.FS
	spec Spec
}

var _ installer.Step = (*Step)(nil)

// New returns the step. What is wrong with the spec is the error of its probe.
func New(fsys host.FS, spec Spec) *Step {
	if spec.Folder == (host.Attr{}) {
		spec.Folder.Mode = 0o755
	}
	return &Step{fs: fsys, spec: spec}
}

// ID is the id of the spec.
func (s *Step) ID() installer.ID { return s.spec.ID }

// Describe is the line of the spec.
func (s *Step) Describe() string { return s.spec.Describe }

// Lifetime is Persistent unless the file lies on a file system of this boot.
func (s *Step) Lifetime() installer.Lifetime { return s.spec.Lifetime }

// Required is the opposite of the spec's Optional.
func (s *Step) Required() bool { return !s.spec.Optional }

// Probe compares the file with the spec, and looks whether it can be written at all: on a
// read-only file system or below a folder that others can change it is Blocked.
func (s *Step) Probe(context.Context) (installer.Observation, error) {
	obs := installer.Observation{Loses: s.spec.Loses, Private: s.spec.Private, Files: []installer.File{s.file()}}
	if err := s.check(); err != nil {
		return obs, err
	}
	var untrusted *host.Untrusted
	err := host.Trusted(s.fs, s.spec.Path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return s.hidden(obs), nil
	case errors.As(err, &untrusted) && untrusted.Component != s.spec.Path:
		obs.State, obs.Detail = installer.Blocked, fmt.Sprintf("%s %s", untrusted.Component, untrusted.Why)
		obs.Next = untrusted.Command()
		return obs, nil
	case err != nil && untrusted == nil:
		return obs, err
	}
	have, err := s.look()
	if errors.Is(err, fs.ErrPermission) {
		return s.hidden(obs), nil
	}
	if err != nil {
		return obs, err
	}
	obs.State, obs.Detail = s.compare(have)
	left, err := s.leftover()
	if err != nil {
		return obs, err
	}
	if left && obs.State == installer.Satisfied {
		obs.State, obs.Detail = installer.Drifted, "a crash left a temporary file beside "+s.spec.Path
	}
	if obs.State == installer.Foreign {
		obs.Next = "ls -ld " + installer.Quote(s.spec.Path)
	}
	return s.writable(obs)
}

// hidden is a file that this user may not look at.
func (s *Step) hidden(obs installer.Observation) installer.Observation {
	obs.State, obs.Detail = installer.Unknown, s.spec.Path+" can only be looked at by root"
	obs.Next = "sudo minhost finalize-install --show"
	return obs
}

// writable turns what would have to be written on a read-only file system into Blocked (/usr of
// an image-based system, B50 in many reports: half an install, then EROFS).
func (s *Step) writable(obs installer.Observation) (installer.Observation, error) {
	if obs.State != installer.Absent && obs.State != installer.Drifted {
		return obs, nil
	}
	disk, ok := s.fs.(interface{ ReadOnly(string) (bool, error) })
	if !ok {
		return obs, nil
	}
	readOnly, err := disk.ReadOnly(filepath.Dir(s.spec.Path))
	if errors.Is(err, fs.ErrPermission) {
		return s.hidden(obs), nil
	}
	if readOnly {
		obs.State = installer.Blocked
		obs.Detail = "the file system of " + filepath.Dir(s.spec.Path) + " is mounted read-only"
		obs.Next = "findmnt -T " + installer.Quote(filepath.Dir(s.spec.Path))
	}
	return obs, err
}

func (s *Step) compare(have found) (installer.State, string) {
	want := s.spec.Attr
	switch {
	case !have.there:
		return installer.Absent, s.spec.Path + " is not there"
	case !have.regular:
		return installer.Foreign, s.spec.Path + " is not a regular file"
	case !bytes.Equal(have.content, s.spec.Content) && !s.ours(have.content):
		return installer.Foreign, s.spec.Path + " is not minhost's"
	case !bytes.Equal(have.content, s.spec.Content):
		return installer.Drifted, s.spec.Path + " has other content"
	case have.attr == want.Settable():
		return installer.Satisfied, s.spec.Path + " is as wanted"
	case !s.ours(have.content):
		return installer.Foreign, s.spec.Path + " has the content, but another owner or mode, and is not minhost's"
	}
	return installer.Drifted, fmt.Sprintf("%s has owner %d:%d mode %04o, wanted %d:%d %04o", s.spec.Path,
		have.attr.UID, have.attr.GID, have.attr.Mode, want.UID, want.GID, want.Mode)
}

func (s *Step) ours(content []byte) bool {
	if s.spec.Ours != nil {
		return s.spec.Ours(content)
	}
	return s.spec.Marker != "" && bytes.Contains(content[:min(len(content), 1024)], []byte(s.spec.Marker))
}

// check finds mistakes in the spec.
func (s *Step) check() error {
	switch {
	case !filepath.IsAbs(s.spec.Path) || filepath.Clean(s.spec.Path) != s.spec.Path:
		return fmt.Errorf("path %q: not absolute and clean", s.spec.Path)
	case (s.spec.Marker != "" || s.spec.Ours != nil) && !s.ours(s.spec.Content):
		return fmt.Errorf("file %s: the wanted content lacks its own marker", s.spec.Path)
	}
	return nil
}

// file is the plan's view; large or binary content goes by its hash.
func (s *Step) file() installer.File {
	f := installer.File{Path: s.spec.Path, Mode: unixMode(s.spec.Attr.Mode), Content: s.spec.Content}
	if f.Content == nil {
		f.Content = []byte{}
	}
	if len(f.Content) > 64<<10 || !utf8.Valid(f.Content) {
		f.Content, f.Digest = nil, digest(s.spec.Content)
	}
	return f
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// unixMode is the mode as chmod writes it.
func unixMode(m fs.FileMode) uint32 {
	bits := uint32(m.Perm())
	for _, b := range []struct {
		go_  fs.FileMode
		unix uint32
	}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}} {
		if m&b.go_ != 0 {
			bits |= b.unix
		}
	}
	return bits
}
