package clients

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// builtEnv names the folder of the examples, copied and compiled outside the namespaces.
const builtEnv = "MINHOST_EXAMPLES"

// Python and Rust compiler of the machine.
const python = "/usr/bin/python3"

func TestMain(m *testing.M) { os.Exit(main(m)) }

// main puts the examples where everybody can run them: the folder of the sources may be root's alone.
func main(m *testing.M) int {
	if os.Getenv(builtEnv) == "" {
		dir, err := os.MkdirTemp("", "minhost-examples-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		if err := build(dir); err != nil {
			panic(err)
		}
		os.Setenv(builtEnv, dir)
	}
	return rig.Main(m, nil)
}

func build(dir string) error {
	const sources = "../../../installer/client/examples"
	text, err := os.ReadFile(filepath.Join(sources, "minhost.py"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "minhost.py"), text, 0o755); err != nil {
		return err
	}
	if rustc, err := exec.LookPath("rustc"); err == nil {
		cmd := exec.Command(rustc, "--edition", "2021", "-D", "warnings", "-o", filepath.Join(dir, "minhost-rs"), filepath.Join(sources, "minhost.rs"))
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o755)
}

func example(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(os.Getenv(builtEnv), name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIP root: %s was not built: no compiler", name)
	}
	return path
}

// clean wants what every runner leaves: nothing.
func clean(t *testing.T) {
	t.Helper()
	rig.Eventually(t, 10*time.Second, "no leaf is left", func() bool { return len(rig.Leaves(t)) == 0 })
	if out := rig.Run(t, "ls"); out.Status != 0 || strings.Contains(out.Stdout, "127.0.64.") {
		t.Error(out)
	}
}

// TestPython: plan, a held child, a pidfd, a socket of the box, teardown with what was refused.
func TestPython(t *testing.T) {
	if _, err := os.Stat(python); err != nil {
		t.Skip("SKIP root: no " + python)
	}
	rig.Bare(t)
	rig.Install(t)
	script := example(t, "minhost.py")
	run := func(args ...string) *rig.Process {
		return rig.Cmd{UID: rig.User, Path: python}.Start(t, append([]string{script}, args...)...)
	}
	p := run("--name", "snake", "--listen", "80", "--", "/bin/sh", "-c",
		`cat /proc/self/cgroup; echo "$MINHOST_ADDRESS"; `+python+` -c 'import socket; socket.create_connection(("127.0.0.1", 81), 5)' 2>/dev/null || exit 7`)
	rig.Eventually(t, 20*time.Second, "the runner listens", func() bool { return strings.Contains(p.Stderr(), "listening at 127.0.64.") })
	conn, err := net.Dial("tcp", strings.Fields(p.Stderr())[2]+":80")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if text, err := io.ReadAll(conn); err != nil || string(text) != "hello from the box\n" {
		t.Errorf("the listener said %q, %v", text, err)
	}
	r := p.Wait()
	if r.Status != 7 || !strings.Contains(r.Stdout, "/boxes/b") || !strings.Contains(r.Stdout, "127.0.64.") || !strings.Contains(r.Stderr, "refused: tcp 127.0.0.1 81") {
		t.Error(r)
	}
	clean(t)
	if r := run("--name", "not a name", "--", "/bin/true").Wait(); r.Status != 1 || !strings.Contains(r.Stderr, "minhost: InvalidArgument: name:") {
		t.Error(r)
	}
	clean(t)
}

// TestRust does the same without descriptors.
func TestRust(t *testing.T) {
	program := example(t, "minhost-rs")
	rig.Bare(t)
	rig.Install(t)
	r := rig.Cmd{UID: rig.User, Path: program}.Run(t, "crab", "/bin/sh", "-c", `cat /proc/self/cgroup; echo "$MINHOST_ADDRESS"; exit 7`)
	if r.Status != 7 || !strings.Contains(r.Stdout, "/boxes/b") || !strings.Contains(r.Stdout, "127.0.64.") {
		t.Error(r)
	}
	clean(t)
	if r := (rig.Cmd{UID: rig.User, Path: program}).Run(t, "not a name", "/bin/true"); r.Status != 1 || !strings.Contains(r.Stderr, "InvalidArgument") {
		t.Error(r)
	}
	clean(t)
}
