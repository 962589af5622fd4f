package strict

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// sleeper starts a box that lives until the test ends.
func sleeper(t *testing.T, env []string, flags ...string) *rig.Process {
	t.Helper()
	p := rig.Cmd{UID: rig.User, Env: env}.Start(t, append(append([]string{"run"}, flags...), "--", "/bin/sh", "-c", "echo up; exec sleep 300")...)
	p.Await("up")
	return p
}

func TestModeNone(t *testing.T) {
	env := place(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, strictness := range []string{"--strict", "--no-strict"} {
		// The host's listener is not there, and loopback is: a refusal, not an unreachable network.
		r := shell(t, env, "grep -c : /proc/net/dev; grep -c -m1 127.0.0.1 /proc/net/fib_trie; exec 2>&1; bash -c ': </dev/tcp/127.0.0.1/"+port+"'", "--mode", "none", strictness)
		if lines := strings.SplitN(r.Stdout, "\n", 3); r.Status != 1 || lines[0] != "1" || lines[1] != "1" || !strings.Contains(r.Stdout, "Connection refused") {
			t.Errorf("%s: %v", strictness, r)
		}
	}
	shell(t, env, "", "--mode", "none", "--allow", "192.0.2.1").Want(t, 125, "--allow contradicts --mode none")
	if len(rig.Leaves(t)) != 0 {
		t.Errorf("leaves are left: %v", rig.Leaves(t))
	}
}

func TestJoin(t *testing.T) {
	env := place(t)
	box := sleeper(t, env, "--name", "web", "--egress", "deny")
	procs := filepath.Join(rig.Boxes, rig.Leaves(t)[0], "cgroup.procs")
	before := lines(t, procs)
	r := shell(t, env, "echo $MINHOST_NAME $MINHOST_ADDRESS; cat /proc/net/fib_trie >/dev/null; sleep 0.5; exit 9", "--join", "web", "--kind", "task")
	if r.Status != 9 || !strings.HasPrefix(r.Stdout, "web 127.0.64.") || r.Stderr != "" {
		t.Errorf("%v", r)
	}
	joined := rig.Cmd{UID: rig.User, Env: env}.Start(t, "run", "--join", "web", "--", "/bin/sh", "-c", "echo up; exec sleep 300")
	joined.Await("up")
	if now := lines(t, procs); now <= before {
		t.Errorf("%d processes are in the leaf, %d before", now, before)
	}
	other := rig.Cmd{UID: rig.Other, Env: env}
	other.Run(t, "run", "--join", "web", "--", "/bin/true").Want(t, 125, "next: ")
	shell(t, env, "", "--join", "web", "--egress", "open").Want(t, 125, "--egress contradicts --join")
	shell(t, env, "", "--join", "nobody").Want(t, 125, "there is no box nobody of this account", "next: minhost ls")

	rig.Cmd{UID: rig.User, Env: env}.Run(t, "stop", "web").Want(t, 0)
	box.Wait()
	if r := joined.Wait(); r.Status != 137 {
		t.Errorf("who joined a box that ended: %v", r)
	}
	shell(t, env, "", "--join", "web").Want(t, 125, "there is no box web", "next: minhost ls")
	if left := kept(t, env); len(left) != 0 {
		t.Errorf("notes are left: %v", left)
	}
}

// The box's own network namespace, by nsenter(1), and checked.
func TestJoinNone(t *testing.T) {
	env := place(t)
	rig.Cmd{UID: rig.User, Env: env}.Start(t, "run", "--name", "alone", "--mode", "none", "--", "/bin/sh", "-c", "readlink /proc/self/ns/net; exec sleep 300").Await("net:")
	var want string
	for _, p := range rig.Processes(t) {
		if p.Role() == "strict-init" {
			link, err := os.Readlink("/proc/" + strconv.Itoa(p.PID) + "/ns/net")
			if err != nil {
				t.Fatal(err)
			}
			want = link
		}
	}
	for _, strictness := range []string{"--strict", "--no-strict"} {
		if r := shell(t, env, "readlink /proc/self/ns/net", "--join", "alone", strictness); strings.TrimSpace(r.Stdout) != want || want == "" {
			t.Errorf("%s: want %s: %v", strictness, want, r)
		}
	}
}

func TestListen(t *testing.T) {
	env := place(t)
	for _, strictness := range []string{"--strict", "--no-strict"} {
		p := rig.Cmd{UID: rig.User, Env: env}.Start(t, "run", "--name", "web", "--egress", "deny", strictness, "--listen", "3000", "--listen", "5353/udp", "--",
			"/bin/sh", "-c", `[ $LISTEN_PID = $$ ] && echo $LISTEN_FDS $MINHOST_ADDRESS; for i in /proc/$$/fd/*; do [ ! -L $i ] || echo -n "${i##*/} "; done; echo up; exec sleep 300`)
		p.Await("up")
		first, rest, _ := strings.Cut(p.Stdout(), "\n")
		address, ok := strings.CutPrefix(first, "2 ")
		if !ok || rest != "0 1 2 3 4 up\n" {
			t.Errorf("%s: %q", strictness, p.Stdout())
		}
		c, err := net.DialTimeout("tcp", address+":3000", 5*time.Second)
		if err != nil {
			t.Errorf("%s: %v", strictness, err)
		} else {
			c.Close()
		}
		rig.Cmd{UID: rig.User, Env: env}.Run(t, "stop", "web").Want(t, 0)
		p.Wait()
	}
	shell(t, env, "", "--listen", "70000").Want(t, 125, "--listen 70000", "next: minhost run --help")
	shell(t, env, "", "--listen", "80/sctp").Want(t, 125, "is not tcp or udp")
}

func TestDetach(t *testing.T) {
	env := place(t)
	r := shell(t, env, "echo to the log; echo and this >&2; exec sleep 300", "--detach", "--name", "web", "--egress", "deny")
	if r.Status != 0 || r.Stdout != "web\n" || r.Stderr != "" {
		t.Fatalf("%v", r)
	}
	if ls := rig.As(t, rig.User, "ls"); !strings.Contains(ls.Stdout, "web") {
		t.Errorf("the box does not live: %v", ls)
	}
	log := strings.TrimPrefix(env[1], "XDG_STATE_HOME=") + "/minhost/web.log"
	rig.Eventually(t, 10*time.Second, "the output is in the log", func() bool {
		b, _ := os.ReadFile(log)
		return string(b) == "to the log\nand this\n"
	})
	rig.Cmd{UID: rig.User, Env: env}.Run(t, "stop", "web").Want(t, 0)
	if len(rig.Leaves(t)) != 0 || len(kept(t, env)) != 0 {
		t.Errorf("left: %v, %v", rig.Leaves(t), kept(t, env))
	}
	// One that ends by itself.
	shell(t, env, "exit 0", "--detach", "--name", "web").Want(t, 0)
	rig.Eventually(t, 20*time.Second, "the box ends with its program", func() bool { return len(rig.Leaves(t)) == 0 })
	rig.Cmd{UID: rig.User, Env: env}.Run(t, "stop", "web").Want(t, 1, "there is no box web", "next: minhost ls")
	if left := kept(t, env); len(left) != 0 {
		t.Errorf("the note of a box that ended by itself is left: %v", left)
	}
	shell(t, env, "", "-d", "-t").Want(t, 125, "--detach contradicts --tty")
}

// kept are the notes of boxes.
func kept(t *testing.T, env []string) []string {
	t.Helper()
	names, err := filepath.Glob(strings.TrimPrefix(env[0], "XDG_RUNTIME_DIR=") + "/minhost/*")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func lines(t *testing.T, path string) int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}
