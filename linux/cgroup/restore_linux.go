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
	if !strings.HasPrefix(group, "/") {
		return fmt.Errorf("cgroup %q: not a path of this hierarchy", group)
	}
	if err := t.gate.Pass(fmt.Sprintf("cgroup move %d back to %s", pid, group)); err != nil {
		return err
	}
	to := &Tree{top: t.top}
	for part := range strings.SplitSeq(group, "/") {
		if part != "" {
			to.parts = append(to.parts, part)
		}
	}
	d, err := to.walk()
	if err != nil {
		return err
	}
	if len(to.parts) > 0 {
		defer d.close()
	}
	return move(d, pid)
}
