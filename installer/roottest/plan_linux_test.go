package roottest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/filestep"
	"github.com/gominimal/minhost/installer/host/hosttest"
	"github.com/gominimal/minhost/verify/netlab"
)

const userEnv = "ROOTTEST_USER"

func TestMain(m *testing.M) {
	if os.Getenv(userEnv) != "" {
		fmt.Print(sight(plan(nil)))
		return
	}
	os.Exit(netlab.Main(m))
}

// plan is what somebody sees of a host with a public file and one in a folder of root's.
func plan(gate host.Gate) (*installer.Engine, installer.Plan) {
	d, err := host.OpenDisk("/", gate)
	if err != nil {
		panic(err)
	}
	file := func(id installer.ID, path string, private bool) installer.Step {
		return filestep.New(d, filestep.Spec{ID: id, Describe: "write " + path, Path: path, Private: private, Marker: "# minhost",
			Content: []byte("# minhost\n"), Attr: host.Attr{Mode: 0o644}, Folder: host.Attr{Mode: 0o755}})
	}
	steps := []installer.Step{file("public", base+"/etc/a", false), file("last", base+"/usr/b/c", false), file("private", base+"/state/b", true)}
	e := installer.New(steps, host.NewStore(d, base+"/journal/journal.json"), "boot", nil)
	return e, e.Plan(context.Background())
}

func sight(_ *installer.Engine, p installer.Plan) string {
	states := make([]string, len(p.Rows))
	for i, r := range p.Rows {
		states[i] = r.State.String()
	}
	return strings.Join(states, " ") + "\n" + p.Digest() + "\n"
}

// asUser runs this test binary as an ordinary user, in the same namespaces.
func asUser(t *testing.T) string {
	t.Helper()
	dir := filepath.Join("/run", "roottest")
	must(t, os.MkdirAll(dir, 0o755))
	program := filepath.Join(dir, "test")
	from, err := os.Open("/proc/self/exe")
	must(t, err)
	defer from.Close()
	to, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	must(t, err)
	_, err = io.Copy(to, from)
	must(t, err)
	must(t, to.Close())
	cmd := exec.Command(program)
	cmd.Dir = "/"
	cmd.Env = []string{userEnv + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func clean(t *testing.T) {
	t.Cleanup(func() {
		names, _ := os.ReadDir(base)
		for _, n := range names {
			os.RemoveAll(filepath.Join(base, n.Name()))
		}
	})
}

// TestDigestDoesNotDependOnWhoLooks: root finds the digest that the user was shown, before and
// after, also where the user sees less.
func TestDigestDoesNotDependOnWhoLooks(t *testing.T) {
	clean(t)
	must(t, os.Mkdir(base+"/state", 0o700))
	e, p := plan(nil)
	for _, want := range []struct{ root, user string }{
		{"absent absent absent", "absent absent unknown"},
		{"satisfied satisfied satisfied", "satisfied satisfied unknown"},
	} {
		root, user := sight(nil, p), asUser(t)
		rootStates, rootDigest, _ := strings.Cut(root, "\n")
		userStates, userDigest, _ := strings.Cut(user, "\n")
		if rootStates != want.root || userStates != want.user {
			t.Errorf("root sees %q, user %q; want %+v", rootStates, userStates, want)
		}
		if rootDigest != userDigest {
			t.Errorf("digests differ:\n%s%s", root, user)
		}
		if _, err := e.Apply(t.Context(), installer.Options{}); err != nil {
			t.Fatal(err)
		}
		p = e.Plan(t.Context())
	}
}

// TestReadOnlyFolder is case B50: nothing is changed when one of the places cannot be written to.
func TestReadOnlyFolder(t *testing.T) {
	clean(t)
	must(t, os.Mkdir(base+"/usr", 0o755))
	must(t, syscall.Mount(base+"/usr", base+"/usr", "", syscall.MS_BIND, ""))
	t.Cleanup(func() { must(t, syscall.Unmount(base+"/usr", 0)) })
	must(t, syscall.Mount("", base+"/usr", "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""))
	before := hosttest.Snapshot(base)
	gate, tally := hosttest.Count()
	e, p := plan(gate)
	if got := p.Rows[1]; got.State != installer.Blocked || !strings.Contains(got.Detail, "read-only") || !strings.Contains(got.Next, base+"/usr") {
		t.Errorf("%+v", got)
	}
	if user, _, _ := strings.Cut(asUser(t), "\n"); user != "absent blocked absent" {
		t.Errorf("a user sees %q", user)
	}
	_, err := e.Apply(t.Context(), installer.Options{})
	if err == nil || !strings.Contains(err.Error(), "read-only") || tally.N() > 0 {
		t.Errorf("%v, changes %q", err, tally.Changes())
	}
	if diff := hosttest.Diff(before, hosttest.Snapshot(base)); len(diff) > 0 {
		t.Errorf("changed: %q", diff)
	}
}

// TestUntrustedFolder is case B129: the folder above belongs to a user.
func TestUntrustedFolder(t *testing.T) {
	clean(t)
	must(t, os.Mkdir(base+"/usr", 0o755))
	must(t, os.Chown(base+"/usr", 1000, 1000))
	gate, tally := hosttest.Count()
	e, p := plan(gate)
	if got := p.Rows[1]; got.State != installer.Blocked || !strings.Contains(got.Detail, "uid 1000") || got.Next != "ls -ld "+base+"/usr" {
		t.Errorf("%+v", got)
	}
	if _, err := e.Apply(t.Context(), installer.Options{}); err == nil || tally.N() > 0 {
		t.Errorf("%v, changes %q", err, tally.Changes())
	}
}

// TestOwner: the file and its folders get the owner that is asked for, and undo gives back the
// owner that was there.
func TestOwner(t *testing.T) {
	clean(t)
	hosttest.CutEverywhere(t, func(t testing.TB) hosttest.Host {
		hosttest.Put(t, base, "etc/theirs", "# minhost, old\n", 0o640)
		if err := os.Chown(base+"/etc/theirs", 12, 34); err != nil {
			t.Fatal(err)
		}
		return hosttest.Host{
			Engine: func(gate host.Gate) *installer.Engine {
				d, err := host.OpenDisk("/", gate)
				if err != nil {
					t.Fatal(err)
				}
				file := func(id installer.ID, path string) installer.Step {
					return filestep.New(d, filestep.Spec{ID: id, Path: path, Marker: "# minhost", Content: []byte("# minhost\n"),
						Attr: host.Attr{UID: 56, GID: 78, Mode: 0o640}, Folder: host.Attr{UID: 0, GID: 78, Mode: 0o750}})
				}
				return installer.New([]installer.Step{file("a", base+"/etc/theirs"), file("b", base+"/new/b")},
					host.NewStore(d, base+"/journal/journal.json"), "boot", nil)
			},
			Snapshot: func() map[string]string { return hosttest.Snapshot(base) },
			Close:    func() { os.RemoveAll(base + "/etc") },
		}
	})
}
