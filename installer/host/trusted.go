package host

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Untrusted says which component of a path somebody other than root can change.
type Untrusted struct {
	Path      string
	Component string
	Why       string
}

func (u *Untrusted) Error() string {
	return fmt.Sprintf("path %s: %s %s; look: %s", u.Path, u.Component, u.Why, u.Command())
}

// Command shows the component.
func (u *Untrusted) Command() string { return "ls -ld " + quote(u.Component) }

// Trusted returns an *Untrusted error unless every component of path, from / on, belongs to root,
// is a real folder (the last may be a file) and is writable by nobody else. The sticky bit is no
// excuse: it lets everybody make names. What does not exist yet is fine: only root can make it.
func Trusted(fsys FS, path string) error {
	if _, err := relative(path); err != nil {
		return err
	}
	for i, p := range components(path) {
		last := p == path && i > 0
		info, err := fsys.Lstat(p)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if why := distrust(info, last); why != "" {
			return &Untrusted{Path: path, Component: p, Why: why}
		}
	}
	return nil
}

func distrust(info Info, last bool) string {
	switch {
	case info.Mode&fs.ModeSymlink != 0:
		return "is a symbolic link"
	case !info.Mode.IsDir() && !(last && info.Mode.IsRegular()):
		return "is not a folder"
	case info.UID != 0:
		return fmt.Sprintf("belongs to uid %d, not to root", info.UID)
	case info.Mode.Perm()&0o002 != 0:
		return fmt.Sprintf("is writable by everybody (mode %04o)", info.Mode.Perm())
	case info.Mode.Perm()&0o020 != 0:
		return fmt.Sprintf("is writable by group %d (mode %04o)", info.GID, info.Mode.Perm())
	}
	return ""
}

// components returns "/", "/a", "/a/b" for "/a/b".
func components(path string) []string {
	all := []string{"/"}
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			all = append(all, path[:i])
		}
	}
	if path != "/" {
		all = append(all, path)
	}
	return all
}

// quote makes a path safe to paste into a shell.
func quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@%,=", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
