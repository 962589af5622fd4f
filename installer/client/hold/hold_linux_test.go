package hold_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What this program holds without close-on-exec, an inherited listener for example, is neither in
// the held child (sockets) nor in the target (anything).
func TestNothingIsInherited(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	leaky := -1
	raw.Control(func(fd uintptr) { leaky, err = unix.Dup(int(fd)) }) // dup clears close-on-exec
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leaky)
	file, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	leakyFile, err := unix.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leakyFile)

	c, out := start(t)
	var sockets []string
	for _, link := range descriptors(t, c.PID()) {
		if strings.HasPrefix(link, "socket:") {
			sockets = append(sockets, link)
		}
	}
	ours, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", leaky))
	// Its own is a unix socket, on which the target comes.
	if err != nil || len(sockets) != 1 || sockets[0] == ours {
		t.Errorf("the held child has %q, %v; the inherited one is %s", sockets, err, ours)
	}
	if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", c.PID())); err != nil || len(env) != 0 {
		t.Errorf("the held child has the environment %q, %v", env, err)
	}
	if err := c.Release(t.Context(), script(`ls /proc/$$/fd`)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(out)
	if want := []string{"0", "1", "2"}; err != nil || !slices.Equal(lines(got), want) {
		t.Errorf("the target has descriptors %q, %v", got, err)
	}
}

func descriptors(t *testing.T, pid int) []string {
	t.Helper()
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(paths) == 0 {
		t.Fatalf("descriptors of %d: %v, %v", pid, paths, err)
	}
	var links []string
	for _, p := range paths {
		if link, err := os.Readlink(p); err == nil {
			links = append(links, link)
		}
	}
	return links
}

func TestPidfdIsTheChilds(t *testing.T) {
	c, _ := start(t)
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", c.Pidfd().Fd()))
	if err != nil || !strings.Contains(string(text), fmt.Sprintf("\nPid:\t%d\n", c.PID())) {
		t.Errorf("%s, %v", text, err)
	}
}

// The Go runtime raises the soft limit of descriptors in every Go program; the target must not
// see that (select(2) breaks above 1024).
func TestDescriptorLimitIsTheCallers(t *testing.T) {
	out, err := exec.Command("/bin/sh", "-c", `ulimit -Sn 512; exec "$0" limit`, os.Args[0]).CombinedOutput()
	if err != nil || string(out) != "512\n" {
		t.Errorf("soft limit of the target %q, %v; want 512", out, err)
	}
}
