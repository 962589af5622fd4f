package cgroup

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// GroupOf returns the cgroup2 path of a process, below the root of the reader's cgroup namespace, for
// Restore.
func (t *Tree) GroupOf(pid int) (string, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return "", err
	}
	return unifiedPath(text), nil
}

// Restore puts a process back to where GroupOf found it: a failed attach leaves nothing behind.
func (t *Tree) Restore(pid int, group string) error {
	if err := t.gate.Pass(fmt.Sprintf("cgroup move %d back to %s", pid, group)); err != nil {
		return err
	}
	d, leave, err := t.group(group)
	if err != nil {
		return err
	}
	defer leave()
	return move(d, pid)
}

// group opens a cgroup by its path, one component at a time. The caller lets go of it with leave.
func (t *Tree) group(path string) (d dir, leave func(), err error) {
	if !strings.HasPrefix(path, "/") {
		return dir{}, nil, fmt.Errorf("cgroup %q: not a path of this hierarchy", path)
	}
	to := &Tree{top: t.top}
	for part := range strings.SplitSeq(path, "/") {
		if part != "" {
			to.parts = append(to.parts, part)
		}
	}
	if d, err = to.walk(); err != nil {
		return dir{}, nil, err
	}
	if len(to.parts) == 0 {
		return d, func() {}, nil // the mount's own
	}
	return d, func() { d.close() }, nil
}
