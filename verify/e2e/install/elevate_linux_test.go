package install

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

const fileRoute = "minhost finalize-install --show --script"

// TestNoWayToRoot: without a terminal, and without a program that elevates silently, the answer is
// the file route, at once.
func TestNoWayToRoot(t *testing.T) {
	before := rig.Bare(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close() // open and silent all the while
	for name, stdin := range map[string]*os.File{"no input": nil, "a pipe that says nothing": read} {
		c := rig.Cmd{UID: rig.User, Timeout: 10 * time.Second}
		if stdin != nil {
			c.Stdin = stdin
		}
		c.Run(t, "finalize-install", "--yes").Want(t, 1, "root is needed", fileRoute)
		c.Run(t, "finalize-install").Want(t, 1, "no terminal", "--yes")
		c.Run(t, undo...).Want(t, 1, "root is needed")
		c.Run(t, "finalize-install", "--apply").Want(t, 1, "for root")
		c.Run(t, "apply").Want(t, 1, "sudo minhost apply")
		t.Log(name)
	}
	before.Same(t)
}

// sudo stands in for /usr/bin/sudo: it hands its input to the test, which is root, and passes output
// and status on.
const sudo = `#!/bin/sh
[ "$*" = "-n /bin/sh -s" ] || { echo "sudo: $*" >&2; exit 9; }
cd /run/elevation || exit 9
cat >input.new && mv input.new input
while [ ! -f status ]; do sleep 0.05; done
cat output
exit "$(cat status)"
`

// withSudo puts the stand-in there and plays root, once.
func withSudo(t *testing.T) (input <-chan []byte) {
	t.Helper()
	mount(t, "/run/elevation", "tmpfs", "mode=1777", 0)
	up, work := "/run/elevation/up", "/run/elevation/work"
	mkdir(t, up, 0)
	mkdir(t, work, 0)
	mount(t, "/usr/bin", "overlay", "lowerdir=/usr/bin,upperdir="+up+",workdir="+work, 0)
	write(t, "/usr/bin/sudo", sudo, 0o755)
	if err := os.Chmod("/usr/bin/sudo", 0o755); err != nil {
		t.Fatal(err)
	}
	got := make(chan []byte, 1)
	go func() {
		defer close(got)
		for t.Context().Err() == nil {
			text, err := os.ReadFile("/run/elevation/input")
			if err != nil {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			got <- text
			r := rig.Cmd{Path: "/bin/sh", Stdin: bytes.NewReader(text), Env: []string{"SUDO_UID=4201"}}.Run(t, "-s")
			os.WriteFile("/run/elevation/output", []byte(r.Stdout+r.Stderr), 0o644)
			status := map[bool]string{true: "0", false: "1"}[r.Status == 0]
			os.WriteFile("/run/elevation/status.new", []byte(status), 0o644)
			os.Rename("/run/elevation/status.new", "/run/elevation/status")
			return
		}
	}()
	return got
}

// TestElevated is the ordinary way of a user with sudo: root reads a script from a pipe, nothing that
// the user can write is run, and the user sees the end of it.
func TestElevated(t *testing.T) {
	rig.Bare(t)
	mkdir(t, "/run/elevation", 0)
	t.Cleanup(func() { os.Remove("/run/elevation") })
	t.Run("install", func(t *testing.T) {
		input := withSudo(t)
		r := rig.As(t, rig.User, "finalize-install", "--yes")
		r.Want(t, 0)
		text := <-input
		if !bytes.HasPrefix(text, []byte("#!/bin/sh\n")) || !bytes.Contains(text, []byte("--expect")) {
			t.Errorf("root was given:\n%s", text)
		}
		if strings.Count(r.Stdout, "this host is ready") != 2 { // root's look and the user's
			t.Error(r)
		}
	})
	if !may(t, rig.Cmd{UID: rig.User}) {
		t.Error("who finished the install may start no box")
	}
	t.Run("undo", func(t *testing.T) {
		input := withSudo(t)
		rig.As(t, rig.User, undo...).Want(t, 0)
		if text := string(<-input); text != "exec "+rig.Program+" finalize-install --undo --apply\n" {
			t.Errorf("root was given %q", text)
		}
	})
	if _, err := os.Stat(rig.Program); err == nil || len(rig.Processes(t)) > 0 {
		t.Error("undo left something")
	}
}
