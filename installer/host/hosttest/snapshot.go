package hosttest

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Snapshot describes everything below dir: path -> mode, owner, hash of the content or target of
// the link. Times are left out: a folder's change when a file comes and goes. What cannot be read
// says why, so that it still compares.
func Snapshot(dir string) map[string]string {
	all := map[string]string{}
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(dir, p)
		if relErr != nil {
			rel = p
		}
		if err != nil {
			all[rel] = "unreadable: " + err.Error()
			return nil
		}
		all[rel] = describe(p, d)
		return nil
	})
	return all
}

func describe(p string, d fs.DirEntry) string {
	fi, err := d.Info()
	if err != nil {
		return "unreadable: " + err.Error()
	}
	s := fi.Mode().String()
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		s += fmt.Sprintf(" %d:%d", st.Uid, st.Gid)
	}
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(p)
		return fmt.Sprintf("%s -> %s %v", s, target, err)
	case fi.Mode().IsRegular():
		b, err := os.ReadFile(p)
		if err != nil {
			return s + " unreadable: " + err.Error()
		}
		return fmt.Sprintf("%s %d bytes %x", s, len(b), sha256.Sum256(b))
	}
	return s
}

// Diff lists what differs, by path: "- path" gone, "+ path" new, "! path" changed. Empty when equal.
func Diff(before, after map[string]string) []string {
	all := maps.Clone(after)
	maps.Copy(all, before)
	var lines []string
	for _, p := range slices.Sorted(maps.Keys(all)) {
		was, had := before[p]
		is, has := after[p]
		switch {
		case !has:
			lines = append(lines, fmt.Sprintf("- %s: %s", p, was))
		case !had:
			lines = append(lines, fmt.Sprintf("+ %s: %s", p, is))
		case was != is:
			lines = append(lines, fmt.Sprintf("! %s: %s, was %s", p, is, was))
		}
	}
	return lines
}
