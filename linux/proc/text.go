package proc

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// UIDs are the four user ids of a process, as its reader's user namespace sees them.
type UIDs struct{ Real, Effective, Saved, FS uint32 }

// All tells whether all four are uid.
func (u UIDs) All(uid uint32) bool { return u == UIDs{uid, uid, uid, uid} }

// statusField returns the words of one line of /proc/PID/status.
func statusField(text []byte, key string) ([]string, error) {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(key+":")); ok {
			return strings.Fields(string(rest)), nil
		}
	}
	return nil, fmt.Errorf("status: no line %q", key)
}

func parseUIDs(text []byte) (UIDs, error) {
	f, err := statusField(text, "Uid")
	if err != nil {
		return UIDs{}, err
	}
	if len(f) != 4 {
		return UIDs{}, fmt.Errorf("status: %d uids, want 4", len(f))
	}
	var n [4]uint32
	for i, s := range f {
		v, err := strconv.ParseUint(s, 10, 32)
		if err != nil {
			return UIDs{}, fmt.Errorf("status: uid: %w", err)
		}
		n[i] = uint32(v)
	}
	return UIDs{n[0], n[1], n[2], n[3]}, nil
}

// parseStart reads field 22 of /proc/PID/stat, in clock ticks after boot. The command name before it
// may hold spaces and brackets: fields count from the last bracket.
func parseStart(text []byte) (uint64, error) {
	i := bytes.LastIndexByte(text, ')')
	if i < 0 {
		return 0, fmt.Errorf("stat: no command name")
	}
	f := strings.Fields(string(text[i+1:])) // f[0] is field 3
	if len(f) < 20 {
		return 0, fmt.Errorf("stat: %d fields", len(f)+2)
	}
	return strconv.ParseUint(f[19], 10, 64)
}

// parsePids reads numbers between spaces, as /proc/PID/task/TID/children holds them.
func parsePids(text []byte) ([]int, error) {
	var out []int
	for f := range bytes.FieldsSeq(text) {
		n, err := strconv.Atoi(string(f))
		if err != nil {
			return nil, fmt.Errorf("children: %w", err)
		}
		out = append(out, n)
	}
	return out, nil
}

// linkKind sorts the text of a /proc/PID/fd link.
func linkKind(link string) Kind {
	switch {
	case strings.HasPrefix(link, "socket:["):
		return Socket
	// "anon_inode:[io_uring]"; brackets and case have changed between kernels for others of its kind.
	case strings.HasPrefix(link, "anon_inode:") && strings.Contains(link, "io_uring"):
		return IOUring
	}
	return Other
}
