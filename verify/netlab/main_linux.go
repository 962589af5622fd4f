package netlab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const (
	stageEnv = "NETLAB_STAGE"
	groupEnv = "NETLAB_CGROUP"
)

// Main is to be called from TestMain: os.Exit(netlab.Main(m)), with the functions that InLeaf and Start
// may run in a process of their own. Outside it starts the test binary
// again inside fresh namespaces; inside it prepares them and runs the tests. Where the lab cannot
// be had it prints "SKIP netns: <missing thing>" and returns 0, or 1 when REQUIRE lists netns.
func Main(m *testing.M, children ...Children) int {
	switch os.Getenv(stageEnv) {
	case "inside":
		if name := os.Getenv(childEnv); name != "" {
			return runChild(name, os.Args[1:], children)
		}
		if err := prepare(); err != nil {
			fmt.Fprintln(os.Stderr, "netlab:", err)
			return 1
		}
		return m.Run()
	}
	if missing := Missing(); missing != "" {
		fmt.Printf("SKIP netns: %s\n", missing)
		if required("netns") {
			return 1
		}
		return 0
	}
	return enter()
}

// Missing names what this machine lacks for the lab; empty when nothing.
func Missing() string {
	if os.Geteuid() != 0 {
		return "root"
	}
	if _, err := exec.LookPath("unshare"); err != nil {
		return "unshare (util-linux)"
	}
	if cgroup2() == "" {
		return "a cgroup2 mount"
	}
	return ""
}

func required(lane string) bool {
	for _, l := range strings.Split(os.Getenv("REQUIRE"), ",") {
		if l == lane {
			return true
		}
	}
	return false
}

// cgroup2 returns the mount point of the first cgroup2 file system, or "".
func cgroup2() string {
	b, _ := os.ReadFile("/proc/self/mountinfo")
	for _, line := range strings.Split(string(b), "\n") {
		if head, tail, ok := strings.Cut(line, " - "); ok && strings.HasPrefix(tail, "cgroup2 ") {
			return strings.Fields(head)[4]
		}
	}
	return ""
}

// enter runs this binary again. The new process joins a cgroup of its own before it unshares the
// cgroup namespace, so that the group becomes the root that it sees.
func enter() int {
	group, err := os.MkdirTemp(cgroup2(), "netlab-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "netlab:", err)
		return 1
	}
	defer removeTree(group)
	// It is the root of the tree inside, which everybody may look into, as on a host.
	if err := os.Chmod(group, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, "netlab:", err)
		return 1
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "netlab:", err)
		return 1
	}
	script := `echo $$ > "$0/cgroup.procs" && exec unshare -C -m -p -n -u -i -f --kill-child --propagation private "$@"`
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, group, self}, os.Args[1:]...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), stageEnv+"=inside", groupEnv+"="+group)
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "netlab:", err)
		return 1
	}
	return 0
}

func removeTree(group string) {
	var dirs []string
	filepath.WalkDir(group, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, p)
		}
		return nil
	})
	for i := len(dirs) - 1; i >= 0; i-- {
		syscall.Rmdir(dirs[i])
	}
}

// prepare builds what a test sees inside the namespaces.
func prepare() error {
	type mount struct {
		source, target, fstype string
		flags                  uintptr
		data                   string
	}
	for _, m := range []mount{
		{"proc", "/proc", "proc", 0, ""},
		{"sysfs", "/sys", "sysfs", 0, ""},
		{"cgroup2", "/sys/fs/cgroup", "cgroup2", 0, "nsdelegate"},
		{"tmpfs", "/run", "tmpfs", 0, "mode=755"},
		{"tmpfs", "/var/lib", "tmpfs", 0, "mode=755"},
	} {
		err := syscall.Mount(m.source, m.target, m.fstype, m.flags, m.data)
		if err != nil && m.fstype == "cgroup2" {
			err = syscall.Mount(m.source, m.target, m.fstype, m.flags, "")
		}
		if err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	if err := overlays("/etc", "/usr/local"); err != nil {
		return err
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return fmt.Errorf("lo up: %w: %s", err, out)
	}
	return nil
}

// overlays puts a copy-on-write layer over each folder.
func overlays(dirs ...string) error {
	for i, d := range dirs {
		base := fmt.Sprintf("/run/netlab/%d", i)
		up, work := base+"/up", base+"/work"
		for _, p := range []string{up, work} {
			if err := os.MkdirAll(p, 0o755); err != nil {
				return err
			}
		}
		opt := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", d, up, work)
		if err := syscall.Mount("overlay", d, "overlay", 0, opt); err != nil {
			return fmt.Errorf("overlay on %s: %w", d, err)
		}
	}
	return nil
}
