package strict

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// hole is one way to get others to act, and the service that would.
type hole struct {
	name, probe, arg string
	// missing names what this kernel lacks for it; the box must be closed all the same.
	missing string
}

// holes makes the services and says where they are.
func holes(t *testing.T) []hole {
	t.Helper()
	user := strconv.Itoa(rig.User)
	agent := filepath.Join(filepath.Dir(prober(t)), "agent") // not below /run
	all := []hole{
		{name: "the session bus", probe: "unix", arg: serve(t, "/run/user/"+user+"/bus")},
		{name: "the user's service manager", probe: "unix", arg: serve(t, "/run/user/"+user+"/systemd/private")},
		{name: "the system bus", probe: "unix", arg: serve(t, "/run/dbus/system_bus_socket")},
		{name: "the service manager", probe: "unix", arg: serve(t, "/run/systemd/private")},
		{name: "nss-resolve", probe: "unix", arg: serve(t, "/run/systemd/resolve/io.systemd.Resolve")},
		{name: "nscd", probe: "unix", arg: serve(t, "/run/nscd/socket")},
		{name: "docker", probe: "unix", arg: serve(t, "/run/docker.sock")},
		{name: "the helper", probe: "unix", arg: rig.Socket},
		{name: "an abstract socket", probe: "unix", arg: serve(t, "@minhost-strict-test")},
		{name: "a socket of the user's", probe: "unix", arg: serve(t, agent)},
		{name: "AF_VSOCK", probe: "family", arg: strconv.Itoa(unix.AF_VSOCK)},
		{name: "AF_ALG", probe: "family", arg: strconv.Itoa(unix.AF_ALG)},
		{name: "io_uring", probe: "io_uring"},
		{name: "TIOCSTI", probe: "ioctl"},
		{name: "keyrings", probe: "keys"},
		{name: "a setuid program", probe: "setuid", arg: setuidProber(t)},
	}
	outsider := strconv.Itoa(rig.Cmd{UID: rig.User, Path: "/bin/sleep"}.Start(t, "300").PID())
	all = append(all,
		hole{name: "ptrace of an outsider", probe: "ptrace", arg: outsider},
		hole{name: "the root of an outsider", probe: "read", arg: filepath.Join("/proc", outsider, "root")},
		hole{name: "a delegated cgroup", probe: "write", arg: delegated(t)},
		hole{name: "System V shared memory", probe: "shm", arg: strconv.Itoa(segment(t))},
		hole{name: "a message queue", probe: "queue", arg: messageQueue(t)})
	for i, h := range all {
		all[i].missing = missing(h)
	}
	return all
}

// missing names what the kernel lacks for a hole, asked as root outside of boxes.
func missing(h hole) string {
	if h.probe != "family" && h.probe != "io_uring" && h.probe != "keys" {
		return ""
	}
	if err := probes[h.probe](h.arg); err != nil {
		return h.name + ": " + err.Error()
	}
	return ""
}

// serve listens on a unix socket that every account may connect to.
func serve(t *testing.T, path string) string {
	t.Helper()
	if path[0] != '@' {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if path[0] != '@' {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func setuidProber(t *testing.T) string {
	t.Helper()
	path := prober(t)
	if err := os.Chmod(path, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	return path
}

// delegated makes a cgroup of the user's, as systemd delegates one, and names a file that freezes all
// that is in it.
func delegated(t *testing.T) string {
	t.Helper()
	dir := rig.Mount + "/strict-test"
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	file := dir + "/cgroup.procs"
	if err := os.Chown(file, rig.User, rig.User); err != nil {
		t.Fatal(err)
	}
	return file
}

func segment(t *testing.T) (key int) {
	t.Helper()
	key = 0x6d686f73
	id, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|0o666)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	return key
}

func messageQueue(t *testing.T) string {
	t.Helper()
	const name = "strict-test"
	p, _ := unix.BytePtrFromString(name)
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(p)), unix.O_CREAT|unix.O_RDWR, 0o666, 0, 0, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	t.Cleanup(func() { unix.Close(int(fd)) })
	return name
}

// Every hole is open from a cooperative box, so that the test is able to fail, and closed from a
// strict one.
func TestHoles(t *testing.T) {
	rig.Bare(t)
	rig.Install(t)
	program := prober(t)
	for _, h := range holes(t) {
		t.Run(h.name, func(t *testing.T) {
			cooperative := boxed(t, []string{"--no-strict"}, program, h.probe, h.arg)
			switch {
			case h.missing != "":
				t.Logf("this kernel cannot show that it is one: %s", h.missing)
			case said(cooperative) != "open":
				t.Errorf("from a cooperative box: %v", cooperative)
			}
			strict := boxed(t, []string{"--strict"}, program, h.probe, h.arg)
			if !strings.HasPrefix(said(strict), "closed: ") || strict.Stderr != "" {
				t.Errorf("from a strict box: %v", strict)
			}
			t.Log(said(strict))
		})
	}
}

// What hides cannot be taken away by becoming root of a further namespace.
func TestHidingStays(t *testing.T) {
	rig.Bare(t)
	rig.Install(t)
	program := prober(t)
	for _, path := range []string{"/run", "/proc", rig.Mount} {
		if r := boxed(t, []string{"--strict"}, program, "uncover", path); !strings.HasPrefix(said(r), "closed: ") {
			t.Errorf("%s: %v", path, r)
		}
	}
	if err := exec.Command("/usr/bin/unshare", "-m", "/bin/true").Run(); err != nil {
		t.Errorf("unshare does not work at all: %v", err)
	}
}
