package strict

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// Host is what the preparation has to know of the host, read before anything is hidden.
type Host struct {
	UID int
	// RunLinks are the symbolic links directly in /run and where they lead: on NixOS the system itself.
	RunLinks map[string]string
	// Kinds tells of the paths in question which exist, links followed: 'd' a folder, 'f' anything else.
	Kinds map[string]byte
	// Cgroups are the mount points of cgroup2 file systems.
	Cgroups []string
	// Resolv is where /etc/resolv.conf leads, and Content what it says; "" when it is not there.
	Resolv, Content string
	// Terminal is the path of descriptor 0, if it is a terminal that can be named here.
	Terminal string
}

// Verbs of actions.
const (
	doMount = "mount" // a file system of Type
	doBind  = "bind"  // what From was before the first action
	doDir   = "dir"
	doLink  = "link" // to From
	doFile  = "file" // with Data
)

// Action is one step of the preparation. Flags are words of mount(8).
type Action struct {
	Do, Path, From, Type, Data string
	Mode                       uint32
	Flags                      string
	// Gone: what is not there any more need not be hidden.
	Gone bool
}

// run is replaced whole, since sockets come and go there while a box lives.
const run = "/run"

// paths that this package asks a Host about.
func (s Spec) paths() []string {
	return append([]string{"/run/media", "/var/run", "/dev/pts", "/dev/shm", "/dev/mqueue", "/dev/console"}, s.Hide...)
}

// Actions is the preparation of a mount namespace, in order. It is a pure function.
func (s Spec) Actions(h Host) []Action {
	user := path.Join(run, "user", strconv.Itoa(h.UID))
	all := []Action{
		{Do: doMount, Path: run, Type: "tmpfs", Flags: "nosuid,nodev", Data: "mode=755"},
		{Do: doDir, Path: "/run/user", Mode: 0o755},
		{Do: doDir, Path: user, Mode: 0o700},
		{Do: doDir, Path: "/run/lock", Mode: 0o1777},
		{Do: doDir, Path: nothing, Mode: 0o555},
	}
	for _, name := range sorted(h.RunLinks) {
		all = append(all, Action{Do: doLink, Path: path.Join(run, name), From: h.RunLinks[name]})
	}
	if h.Kinds["/run/media"] == 'd' { // removable disks
		all = append(all, Action{Do: doDir, Path: "/run/media", Mode: 0o755}, Action{Do: doBind, Path: "/run/media", From: "/run/media"})
	}
	all = append(all, s.resolver(h)...)
	if h.Kinds["/var/run"] == 'd' { // mostly it leads to /run
		all = append(all, empty("/var/run"))
	}
	for _, p := range s.Hide {
		switch {
		case p == run || below(p, run) || s.hidesAbove(p, h):
		case h.Kinds[p] == 'd':
			a := empty(p)
			a.Gone = true
			all = append(all, a)
		case h.Kinds[p] == 'f':
			all = append(all, Action{Do: doBind, Path: p, From: "/dev/null", Gone: true})
		}
	}
	return append(append(all, devices(s, h)...), kernel(h)...)
}

// hidesAbove tells whether a folder above p is hidden.
func (s Spec) hidesAbove(p string, h Host) bool {
	return slices.ContainsFunc(s.Hide, func(dir string) bool { return h.Kinds[dir] == 'd' && below(p, dir) })
}

// nothing is an empty folder. It is bound over what is hidden, and memory for /dev/shm is beside it: one
// file system is sooner taken down at the end of a box than many.
const nothing = "/run/.nothing"

func empty(p string) Action { return Action{Do: doBind, Path: p, From: nothing} }

// resolver gives the target its resolv.conf: where that leads into /run, nothing is left of it.
func (s Spec) resolver(h Host) []Action {
	text := h.Content
	if len(s.Nameservers) > 0 {
		var b strings.Builder
		for _, n := range s.Nameservers {
			b.WriteString("nameserver " + n + "\n")
		}
		text = b.String()
	}
	switch {
	case h.Resolv == "":
		return nil
	case below(h.Resolv, run):
		var all []Action
		for _, dir := range between(run, path.Dir(h.Resolv)) {
			all = append(all, Action{Do: doDir, Path: dir, Mode: 0o755})
		}
		return append(all, Action{Do: doFile, Path: h.Resolv, Data: text, Mode: 0o644})
	case len(s.Nameservers) == 0:
		return nil
	}
	const own = "/run/resolv.conf"
	return []Action{{Do: doFile, Path: own, Data: text, Mode: 0o644}, {Do: doBind, Path: h.Resolv, From: own}}
}

// devices are what of /dev reaches other processes: terminals, shared memory, message queues.
func devices(s Spec, h Host) []Action {
	var all []Action
	if h.Kinds["/dev/pts"] == 'd' {
		all = append(all, Action{Do: doMount, Path: "/dev/pts", Type: "devpts", Flags: "nosuid,noexec", Data: "newinstance,ptmxmode=0666,mode=620"})
	}
	if h.Kinds["/dev/shm"] == 'd' {
		const shared = "/run/.shm"
		all = append(all, Action{Do: doDir, Path: shared, Mode: 0o1777}, Action{Do: doBind, Path: "/dev/shm", From: shared})
	}
	if h.Kinds["/dev/mqueue"] == 'd' {
		all = append(all, Action{Do: doMount, Path: "/dev/mqueue", Type: "mqueue", Flags: "nosuid,nodev,noexec"})
	}
	if s.Terminal && h.Terminal != "" && h.Kinds["/dev/console"] != 0 {
		all = append(all, Action{Do: doBind, Path: "/dev/console", From: h.Terminal})
	}
	return all
}

// kernel are the views of kernel objects: the leaf is the root of every cgroup tree, and only
// processes of the new pid namespace are to be seen.
func kernel(h Host) []Action {
	var all []Action
	for _, p := range h.Cgroups {
		// The kernel mounts no file system right upon itself (EBUSY), even with another root.
		all = append(all, empty(p), Action{Do: doMount, Path: p, Type: "cgroup2", Flags: "nosuid,nodev,noexec"})
	}
	return append(all, Action{Do: doMount, Path: "/proc", Type: "proc", Flags: "nosuid,nodev,noexec"})
}

// below tells whether p is inside dir. Both are clean.
func below(p, dir string) bool { return strings.HasPrefix(p, dir+"/") }

// between lists the folders from the one below top down to dir.
func between(top, dir string) []string {
	var all []string
	for ; below(dir, top); dir = path.Dir(dir) {
		all = append([]string{dir}, all...)
	}
	return all
}
