package strict

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// place gives the user folders for what minhost keeps, and an installed host.
func place(t *testing.T) (env []string) {
	t.Helper()
	rig.Bare(t)
	rig.Install(t)
	dir, err := os.MkdirTemp("/usr/local", "home")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, sub := range []string{"", "run", "state"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Join(dir, sub), rig.User, rig.User); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"XDG_RUNTIME_DIR=" + dir + "/run", "XDG_STATE_HOME=" + dir + "/state"}
}

func shell(t *testing.T, env []string, line string, flags ...string) rig.Result {
	t.Helper()
	return rig.Cmd{UID: rig.User, Env: env}.Run(t, append(append([]string{"run"}, flags...), "--", "/bin/sh", "-c", line)...)
}

func TestStrictProgram(t *testing.T) {
	env := place(t)
	for _, c := range []struct {
		name, line, out string
		status          int
	}{
		{"its status", "exit 7", "", 7},
		{"a signal", "kill -TERM $$", "", 143},
		{"killed", "kill -KILL $$", "", 137},
		{"quit", "kill -QUIT $$", "", 131},
		{"its own processes alone", "ls -d /proc/[0-9]* | wc -l", "3\n", 0}, // process 1, the shell, wc; ls is gone by then or not counted
		{"its leaf is the root", "sed -n 's/^0:://p' /proc/self/cgroup; ls " + rig.Mount + "/minhost 2>/dev/null", "/\n", 2},
		{"its name server", "cat /etc/resolv.conf", "nameserver 127.0.0.1\n", 0},
		{"a runtime folder", "stat -c %a%u /run/user/4201 && ls -A /run/user", "7004201\n4201\n", 0},
		{"nothing inherited", "for i in /proc/$$/fd/*; do [ ! -L $i ] || echo ${i##*/}; done", "0\n1\n2\n", 0},
		{"not traced, not root", "grep -c '^NoNewPrivs:.1$\\|^Seccomp:.2$\\|^CapPrm:.0*$' /proc/self/status", "3\n", 0},
		{"orphans are reaped", "(sh -c 'sleep 0.1' &); sleep 0.6; grep -l '^State:.Z' /proc/[0-9]*/status", "", 1},
		{"shared memory works", "echo x >/dev/shm/x && cat /dev/shm/x", "x\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := shell(t, env, c.line, "--egress", "deny")
			if c.name == "its own processes alone" {
				if n := strings.TrimSpace(r.Stdout); n != "3" && n != "4" {
					t.Errorf("%v", r)
				}
				return
			}
			if r.Status != c.status || r.Stdout != c.out || r.Stderr != "" {
				t.Errorf("want status %d and %q: %v", c.status, c.out, r)
			}
		})
	}
	for name, status := range map[string]int{"/etc/passwd": 126, "no-such-program": 127} {
		if r := (rig.Cmd{UID: rig.User, Env: env}).Run(t, "run", "--egress", "deny", "--", name); r.Status != status {
			t.Errorf("%s: %v", name, r)
		}
	}
	if len(rig.Leaves(t)) != 0 {
		t.Errorf("leaves are left: %v", rig.Leaves(t))
	}
}

// Which boxes are strict when nobody says so.
func TestWhoIsStrict(t *testing.T) {
	env := place(t)
	const line = "grep '^NoNewPrivs' /proc/self/status | tr -d '\\t'"
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{nil, "NoNewPrivs:0\n"},
		{[]string{"--strict"}, "NoNewPrivs:1\n"},
		{[]string{"--egress", "deny"}, "NoNewPrivs:1\n"},
		{[]string{"--allow", "192.0.2.1"}, "NoNewPrivs:1\n"},
		{[]string{"--deny-subnet", "192.0.2.0/24"}, "NoNewPrivs:1\n"},
		{[]string{"--egress", "deny", "--no-strict"}, "NoNewPrivs:0\n"},
		{[]string{"--mode", "none"}, "NoNewPrivs:1\n"},
	} {
		if r := shell(t, env, line, c.flags...); r.Stdout != c.want || r.Stderr != "" {
			t.Errorf("%v: want %s: %v", c.flags, c.want, r)
		}
	}
}

// Where an account gets no namespaces the box is cooperative and says so, or is refused.
func TestNoNamespaces(t *testing.T) {
	env := place(t)
	// Root of a user namespace that allows no further one, and may mount nothing.
	run := func(flags string) rig.Result {
		line := "echo 0 >/proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-sys_admin " +
			rig.Binary(rig.Standard) + " run " + flags + " -- /bin/echo ran"
		return rig.Cmd{UID: rig.User, Env: env, Path: "/usr/bin/unshare"}.Run(t, "-Ur", "/bin/sh", "-c", line)
	}
	if r := run("--egress deny"); r.Status != 0 || r.Stdout != "ran\n" ||
		!strings.Contains(r.Stderr, "is cooperative, not strict: user namespaces are switched off") || strings.Count(r.Stderr, "\n") != 1 {
		t.Errorf("the default: %v", r)
	}
	r := run("--egress deny --strict")
	r.Want(t, 125, "cannot be strict: user namespaces are switched off", "next: sysctl -w user.max_user_namespaces=10000, as root; or minhost run --no-strict")
	if r.Stdout != "" {
		t.Errorf("the program ran: %v", r)
	}
	// Never the host's network instead of one of its own.
	r = run("--mode none")
	r.Want(t, 125, "no network namespace for box", "user namespaces are switched off", "next: sysctl -w")
	if r.Stdout != "" || len(rig.Leaves(t)) != 0 {
		t.Errorf("mode none ran: %v, %v", r, rig.Leaves(t))
	}
	if r := run("--egress deny --no-strict"); r.Status != 0 || r.Stderr != "" {
		t.Errorf("unasked: %v", r)
	}
}

// Nothing of a strict box outlives its runner, its program, or process 1.
func TestStrictEnds(t *testing.T) {
	env := place(t)
	start := func() *rig.Process {
		p := rig.Cmd{UID: rig.User, Env: env}.Start(t, "run", "--name", "web", "--egress", "deny", "--", "/bin/sh", "-c", "setsid sleep 300 & echo up; wait")
		p.Await("up")
		return p
	}
	none := func() bool { return len(rig.Leaves(t)) == 0 }
	p := start()
	p.Signal(syscall.SIGKILL)
	rig.Eventually(t, 20*time.Second, "the box of a killed runner ends", none)
	p = start()
	p.Signal(syscall.SIGTERM)
	if r := p.Wait(); r.Status != 143 || !none() {
		t.Errorf("after SIGTERM: %v, %v", r, rig.Leaves(t))
	}
	p = start()
	for _, proc := range rig.Processes(t) {
		if proc.Role() == "strict-init" {
			proc.Kill()
		}
	}
	if r := p.Wait(); r.Status != 137 && r.Status != 125 || !none() {
		t.Errorf("after the end of process 1: %v, %v", r, rig.Leaves(t))
	}
}

// A working directory that is not there any more is an error, not another place.
func TestHiddenDirectory(t *testing.T) {
	env := place(t)
	dir := fmt.Sprintf("/run/user/%d/work", rig.User)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := rig.Cmd{UID: rig.User, Env: env, Path: "/bin/sh"}.Run(t, "-c", "cd "+dir+" && exec "+rig.Binary(rig.Standard)+" run --egress deny --strict -- /bin/echo ran")
	r.Want(t, 125, "the working directory "+dir+" is not there in a strict box", "next: minhost run --no-strict")
}

// The box view answers over the network, without the sockets that are hidden.
func TestStrictLookup(t *testing.T) {
	env := place(t)
	r := shell(t, env, "getent hosts web.min.internal | cut -d' ' -f1; echo $MINHOST_ADDRESS; getent hosts example.com", "--name", "web", "--egress", "deny", "--strict")
	if got := strings.Fields(r.Stdout); r.Status != 2 || len(got) != 2 || got[0] != got[1] || !strings.HasPrefix(got[0], "127.0.64.") {
		t.Errorf("%v", r)
	}
}
