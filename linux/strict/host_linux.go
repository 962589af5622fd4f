package strict

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// readHost reads what the actions depend on.
func readHost(s Spec) (Host, error) {
	h := Host{UID: os.Geteuid(), RunLinks: map[string]string{}, Kinds: map[string]byte{}}
	entries, err := os.ReadDir(run)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return h, err
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if to, err := os.Readlink(filepath.Join(run, e.Name())); err == nil {
			h.RunLinks[e.Name()] = to
		}
	}
	for _, p := range s.paths() {
		if kind := kindOf(p); kind != 0 {
			h.Kinds[p] = kind
		}
	}
	if to, err := filepath.EvalSymlinks("/var/run"); err == nil && to == run {
		delete(h.Kinds, "/var/run")
	}
	// Not the descriptor itself: it is of the mount namespace that it was opened in.
	if to, err := os.Readlink("/proc/self/fd/0"); err == nil && below(to, "/dev/pts") {
		h.Terminal = to
	}
	const resolvConf = "/etc/resolv.conf"
	if to, err := filepath.EvalSymlinks(resolvConf); err == nil {
		text, err := os.ReadFile(to)
		if err != nil {
			return h, err
		}
		h.Resolv, h.Content = to, string(text)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	for _, p := range cgroupMounts(string(mounts)) {
		// The table lists mounts that others cover, too.
		var fs unix.Statfs_t
		if unix.Statfs(p, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
			h.Cgroups = append(h.Cgroups, p)
		}
	}
	return h, err
}

// kindOf is 0 for what is not there, or out of reach: what this account cannot see now, the target
// cannot either.
func kindOf(p string) byte {
	info, err := os.Stat(p)
	switch {
	case err != nil:
		return 0
	case info.IsDir():
		return 'd'
	}
	return 'f'
}

// cgroupMounts reads a mountinfo. Its fields 5 and, behind the hyphen, 1 are mount point and type.
func cgroupMounts(mountinfo string) []string {
	var all []string
	for line := range strings.Lines(mountinfo) {
		head, tail, ok := strings.Cut(line, " - ")
		fields := strings.Fields(head)
		if ok && len(fields) > 4 && strings.HasPrefix(tail, "cgroup2 ") {
			all = append(all, unescape.Replace(fields[4]))
		}
	}
	return all
}

// unescape undoes what the kernel does to blanks in mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// flagWords are the words of Action.Flags.
func mountFlags(words string) (flags uintptr) {
	for word := range strings.SplitSeq(words, ",") {
		switch word {
		case "nosuid":
			flags |= unix.MS_NOSUID
		case "nodev":
			flags |= unix.MS_NODEV
		case "noexec":
			flags |= unix.MS_NOEXEC
		case "ro":
			flags |= unix.MS_RDONLY
		}
	}
	return flags
}
