package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// Report is what Probe read. The tree is good when Present and no Problems.
type Report struct {
	// Present: root, holder and boxes exist.
	Present bool
	// Missing names those that do not, relative to the mount.
	Missing []string
	// BoxesID and Level are what rules must name; BoxesID is 0 when boxes is missing.
	BoxesID uint64
	Level   int
	// Problems are one line each: what is there and wrong.
	Problems []string
}

// Good tells whether nothing is to be done.
func (r Report) Good() bool { return r.Present && len(r.Problems) == 0 }

// Probe only reads, by name from the mount downwards, and needs no privilege.
func (t *Tree) Probe() (Report, error) {
	r := Report{Level: t.Level()}
	for _, below := range [][]string{nil, {holderName}, {boxesName}} {
		d, err := t.walk(below...)
		if errors.Is(err, fs.ErrNotExist) {
			r.Missing = append(r.Missing, strings.Join(append([]string{t.rel}, below...), "/"))
			continue
		}
		if err != nil {
			return r, err
		}
		problems, err := inspect(d)
		r.Problems = append(r.Problems, problems...)
		if err == nil && below != nil && below[0] == boxesName {
			r.BoxesID, err = d.id()
		}
		d.close()
		if err != nil {
			return r, err
		}
	}
	r.Present = len(r.Missing) == 0
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.boxes.f != nil && r.BoxesID != 0 {
		// systemd removes empty directories of a unit that restarts; a new one has a new id, which no
		// rule matches (CASES B03).
		if id, err := t.boxes.id(); err != nil || id != r.BoxesID {
			r.Problems = append(r.Problems, fmt.Sprintf("%s/boxes was made again since it was opened: its id is now %d, was %d", t.rel, r.BoxesID, id))
		}
	}
	return r, nil
}

// inspect checks one directory of the tree.
func inspect(d dir) ([]string, error) {
	var problems []string
	// The kernel asks for the right to write cgroup.procs, a file with an owner of its own (CASES B38).
	for _, name := range []string{".", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"} {
		var st unix.Stat_t
		err := unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil {
			return nil, d.fail("stat", name, err)
		}
		if st.Uid != 0 || st.Gid != 0 || st.Mode&0o022 != 0 {
			problems = append(problems, fmt.Sprintf("%s: owner %d:%d mode %04o, want root and writable by root only: a box could leave its leaf",
				d.join(name), st.Uid, st.Gid, st.Mode&0o7777))
		}
	}
	kind, err := d.read("cgroup.type")
	if err != nil {
		return nil, err
	}
	// "domain threaded" and "domain invalid" take no process (EOPNOTSUPP, CASES B40).
	if k := strings.TrimSpace(string(kind)); k != "domain" {
		problems = append(problems, fmt.Sprintf("%s: cgroup.type is %q, want \"domain\"", d.name, k))
	}
	control, err := d.read("cgroup.subtree_control")
	if err != nil {
		return nil, err
	}
	if c := strings.TrimSpace(string(control)); c != "" {
		problems = append(problems, fmt.Sprintf("%s: controllers enabled for its children: %s", d.name, c))
	}
	return problems, nil
}
