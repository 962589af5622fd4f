package install

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// knock tries the port for ever and prints the status of curl, one a line: 0 reached, 7 refused.
const knock = `while :; do curl -so /dev/null --max-time 2 http://127.0.0.1:%d/; echo "$?"; done`

func knocker(t *testing.T, name string, port int, flags ...string) *rig.Process {
	t.Helper()
	args := append([]string{"run", "--name", name}, flags...)
	p := rig.Cmd{UID: rig.User}.Start(t, append(args, "--", "/bin/sh", "-c", fmt.Sprintf(knock, port))...)
	p.Await("\n")
	return p
}

// TestUpgrade: a newer program installed over: the file is another one, the services run it, the boxes
// live on and at no moment reach more or less than they may.
func TestUpgrade(t *testing.T) {
	before := rig.Bare(t)
	rig.Install(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler()}
	go server.Serve(l)
	defer server.Close()
	port := l.Addr().(*net.TCPAddr).Port
	denied := knocker(t, "denied", port, "--egress", "deny")
	allowed := knocker(t, "allowed", port, "--allow", fmt.Sprintf("127.0.0.1/32:%d/tcp", port))
	opened := knocker(t, "opened", port)
	inode, old := inodeOf(t, rig.Program), rig.Processes(t)
	leaves := rig.Leaves(t)

	for _, c := range []struct{ build, version string }{{newer, "e2e-newer"}, {rig.Standard, "e2e"}} {
		r := rig.Cmd{Path: rig.Binary(c.build)}.Run(t, install...)
		r.Want(t, 0)
		if !strings.Contains(r.Stdout, "done: copy this program") || !strings.Contains(r.Stdout, "done: start helper") {
			t.Errorf("not upgraded: %v", r)
		}
		if now := inodeOf(t, rig.Program); now == inode {
			t.Error("the program was written in place")
		} else {
			inode = now
		}
		for _, p := range rig.Processes(t) {
			if slices.Contains(allRoles, p.Role()) && (p.Exe != rig.Program || slices.ContainsFunc(old, func(o rig.Proc) bool { return o.PID == p.PID })) {
				t.Errorf("still the older program: %v %s", p, p.Exe)
			}
		}
		old = rig.Processes(t)
		if r := rig.As(t, rig.User, "status"); !strings.Contains(r.Stdout, c.version) {
			t.Errorf("version: %v", r)
		}
		for _, p := range []*rig.Process{denied, allowed, opened} {
			n := strings.Count(p.Stdout(), "\n")
			rig.Eventually(t, 10e9, "the box goes on", func() bool { return strings.Count(p.Stdout(), "\n") > n+3 })
		}
		rig.Cmd{Path: rig.Binary(c.build)}.Run(t, "verify").Want(t, 0)
	}
	if now := rig.Leaves(t); !slices.Equal(now, leaves) {
		t.Errorf("leaves: %v, were %v", now, leaves)
	}
	for name, c := range map[string]struct {
		p    *rig.Process
		want string
	}{"denied": {denied, "7"}, "allowed": {allowed, "0"}, "opened": {opened, "0"}} {
		if c.p.Ended() {
			t.Errorf("box %s ended: %s", name, c.p.Stderr())
		}
		c.p.Signal(syscall.SIGTERM)
		c.p.Wait()
		for i, line := range strings.Fields(c.p.Stdout()) {
			if line != c.want {
				t.Errorf("box %s: attempt %d ended with %s, want %s", name, i, line, c.want)
			}
		}
	}
	server.Close()
	rig.Undo(t)
	before.Same(t)
}

func inodeOf(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}
