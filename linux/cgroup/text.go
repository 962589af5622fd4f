package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

const (
	boxesName  = "boxes"
	holderName = "holder"
	maxName    = 64
)

// ValidName tells whether a leaf may have this name: 1 to 64 letters, digits, "-" and "_", the first
// not a sign. No dot: "." and ".." mean other directories, and "cgroup.procs" is a file of the kernel.
func ValidName(id string) bool {
	if id == "" || len(id) > maxName || id[0] == '-' || id[0] == '_' {
		return false
	}
	for _, c := range []byte(id) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

func checkName(op, id string) error {
	if ValidName(id) {
		return nil
	}
	return &fs.PathError{Op: op, Path: boxesName + "/" + strconv.Quote(id), Err: fs.ErrInvalid}
}

// splitRel checks the path of the root below the mount ("minhost", "system.slice/minhost-tree.service")
// and returns its parts.
func splitRel(rel string) ([]string, error) {
	if rel == "" || path.Clean(rel) != rel || rel[0] == '/' || rel == "." || strings.HasPrefix(rel, "..") {
		return nil, &fs.PathError{Op: "cgroup", Path: strconv.Quote(rel), Err: fs.ErrInvalid}
	}
	parts := strings.Split(rel, "/")
	// boxes is one deeper. nft refuses a level above 255 (CASES B20).
	if len(parts)+1 > 255 {
		return nil, fmt.Errorf("cgroup %s: deeper than the 255 levels that a rule can name", rel)
	}
	return parts, nil
}

// unifiedPath returns the cgroup2 path of a process from the text of /proc/PID/cgroup: the line of
// hierarchy 0, relative to the reader's cgroup namespace. Empty when there is no such line.
func unifiedPath(text []byte) string {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("0::")); ok {
			return strings.TrimSuffix(string(rest), "\n")
		}
	}
	return ""
}

// leafIn returns the name of the leaf that a cgroup2 path is in or below, "" when in none. The kernel
// puts " (deleted)" behind the path of a removed cgroup (a zombie's); a leaf's name has no space.
func leafIn(rel, cgroupPath string) string {
	rest, ok := strings.CutPrefix(cgroupPath, "/"+rel+"/"+boxesName+"/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return strings.TrimSuffix(name, " (deleted)")
}

var errNoPopulated = errors.New("no line \"populated\"")

// populated reads the text of cgroup.events.
func populated(text []byte) (bool, error) {
	for line := range bytes.Lines(text) {
		if v, ok := bytes.CutPrefix(line, []byte("populated ")); ok {
			return string(bytes.TrimSpace(v)) != "0", nil
		}
	}
	return false, errNoPopulated
}

// pids reads the text of cgroup.procs. A process of a pid namespace that is not below the reader's shows
// as 0: it cannot be named, and is left out.
func pids(text []byte) ([]int, error) {
	var out []int
	for f := range bytes.FieldsSeq(text) {
		n, err := strconv.Atoi(string(f))
		if err != nil {
			return nil, fmt.Errorf("cgroup.procs: %w", err)
		}
		if n > 0 {
			out = append(out, n)
		}
	}
	return out, nil
}
