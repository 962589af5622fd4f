package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// What FindMount can miss. Each is a fact of the host: a step that meets one is Blocked.
var (
	ErrNoMount  = errors.New("no cgroup2 file system is mounted")
	ErrReadOnly = errors.New("cgroup2 is mounted read-only: no cgroup can be made")
	ErrNotRoot  = errors.New("only a part of the cgroup2 tree is mounted: the level of a cgroup below the root cannot be told")
	ErrCovered  = errors.New("another file system is mounted over cgroup2")
)

// Mount is the cgroup2 mount that the tree lives on, with what else the mounts tell about cgroups.
type Mount struct {
	// Point is the absolute path of the mount, unescaped: /sys/fs/cgroup or
	// /sys/fs/cgroup/unified, but it may be anywhere.
	Point string
	// NSDelegate: cgroup namespaces are borders for moves. Without it a box run by root is held by
	// nothing; leaves owned by root hold all others.
	NSDelegate bool
	// Hybrid: cgroup v1 hierarchies are mounted beside it.
	Hybrid bool
	// NetClass: net_cls or net_prio (v1) is mounted. Before kernel 5.15 the first use of either
	// switches cgroup2 matching of sockets off until the next reboot (CASES B07).
	NetClass bool
}

// entry is one line of mountinfo; see proc_pid_mountinfo(5).
type entry struct {
	id, parent, root, point, fstype string
	options, super                  []string
}

// FindMount picks the cgroup2 mount from the text of /proc/PID/mountinfo. Usable is one whose root is
// the root of the hierarchy, that is writable and that nothing is mounted over. Among several it
// takes one with nsdelegate, then one below /sys/fs/cgroup, then the deepest, then the last. When none
// is usable, the error says why the best one is not.
func FindMount(text string) (Mount, error) {
	all := parse(text)
	var usable []entry
	reason := ErrNoMount
	m := Mount{}
	for _, e := range all {
		switch e.fstype {
		case "cgroup":
			m.Hybrid = true
			m.NetClass = m.NetClass || has(e.super, "net_cls") || has(e.super, "net_prio")
		case "cgroup2":
			if why := unusable(e, all); why != nil {
				reason = fmt.Errorf("%s: %w", e.point, why)
				continue
			}
			usable = append(usable, e)
		}
	}
	if len(usable) == 0 {
		return Mount{}, reason
	}
	slices.Reverse(usable) // MaxFunc keeps the first of equals
	best := slices.MaxFunc(usable, func(a, b entry) int {
		return cmp.Or(
			boolCmp(has(a.super, "nsdelegate"), has(b.super, "nsdelegate")),
			boolCmp(beneath("/sys/fs/cgroup", a.point), beneath("/sys/fs/cgroup", b.point)),
			cmp.Compare(strings.Count(a.point, "/"), strings.Count(b.point, "/")),
		)
	})
	m.Point, m.NSDelegate = best.point, has(best.super, "nsdelegate")
	return m, nil
}

// unusable says why the tree cannot live on e.
func unusable(e entry, all []entry) error {
	switch {
	case e.root != "/":
		return ErrNotRoot
	// The mount's own options, not those of the file system: a container gets a read-only mount of a
	// file system that is rw.
	case !has(e.options, "rw"):
		return ErrReadOnly
	case covered(e, all):
		return ErrCovered
	}
	return nil
}

// covered tells whether a lookup of e's mount point ends in another mount: one stacked on e, or one
// that hides the directory in which e or a mount above it sits.
func covered(e entry, all []entry) bool {
	byID := make(map[string]entry, len(all))
	for _, o := range all {
		byID[o.id] = o
	}
	for _, o := range all {
		if o.parent == e.id && o.point == e.point && o.id != e.id {
			return true
		}
	}
	for range all {
		for _, o := range all {
			if o.parent == e.parent && o.id != e.id && o.point != e.point && beneath(o.point, e.point) {
				return true
			}
		}
		up, ok := byID[e.parent]
		if !ok || up.id == e.id {
			return false
		}
		e = up
	}
	return false
}

// parse reads the lines that have the form of a mount; others are left out.
func parse(text string) []entry {
	var out []entry
	for line := range strings.Lines(text) {
		// Zero or more optional fields end with a lone dash: fields cannot be counted from the left.
		head, tail, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(head), strings.Fields(tail)
		if !ok || len(left) < 6 || len(right) < 1 {
			continue
		}
		e := entry{
			id: left[0], parent: left[1], root: unescape(left[3]), point: unescape(left[4]),
			options: strings.Split(left[5], ","), fstype: right[0],
		}
		// The source may be empty text ("mount '' ..."), which leaves one field fewer; the options of
		// the file system are always the last.
		if len(right) > 1 {
			e.super = strings.Split(right[len(right)-1], ",")
		}
		out = append(out, e)
	}
	return out
}

// unescape decodes \040 and the like: three octal digits after a backslash.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && octal(s[i+1:i+4]) {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func octal(s string) bool {
	return strings.Trim(s, "01234567") == "" && s[0] <= '3'
}

func has(list []string, word string) bool { return slices.Contains(list, word) }

// beneath tells whether path is dir or below it.
func beneath(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func boolCmp(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
