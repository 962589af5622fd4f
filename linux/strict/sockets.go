package strict

import (
	"maps"
	"slices"
	"strings"
)

// Sockets lists the absolute paths of /proc/net/unix, each once, without those that Actions hides with
// /run. A path may be another mount namespace's, or of a file that is gone.
func Sockets(table string) []string {
	found := map[string]bool{}
	for line := range strings.Lines(table) {
		// Num RefCount Protocol Flags Type St Inode Path: numbers up to the path, or the @ of an abstract one.
		i := strings.IndexAny(line, "/@")
		if i < 0 || line[i] == '@' {
			continue
		}
		p := strings.TrimSuffix(line[i:], "\n")
		if !below(p, run) && !below(p, "/var/run") {
			found[p] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Usual are folders in which other programs of the account make sockets at any time, of the account
// uid: X, the session manager, tmux.
func Usual(uid string) []string {
	return []string{"/tmp/.X11-unix", "/tmp/.ICE-unix", "/tmp/tmux-" + uid}
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
