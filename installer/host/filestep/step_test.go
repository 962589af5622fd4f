package filestep_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/filestep"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

var ctx = context.Background()

const path = "/etc/minhost/a.conf"

// version is the step as one version of minhost has it.
func version(d hosttest.Disk, v string) *filestep.Step {
	return filestep.New(d, filestep.Spec{ID: "a", Path: path, Marker: marker, Loses: "all of it",
		Content: []byte(marker + "\n" + v + "\n"), Attr: host.Attr{Mode: 0o644}})
}

func TestProbe(t *testing.T) {
	put := func(content string, mode os.FileMode) func(*testing.T, string) {
		return func(t *testing.T, root string) { hosttest.Put(t, root, path, content, mode) }
	}
	for name, tc := range map[string]struct {
		prepare func(t *testing.T, root string)
		want    installer.State
		next    string
	}{
		"nothing":         {func(*testing.T, string) {}, installer.Absent, ""},
		"as wanted":       {put(marker+"\nv1\n", 0o644), installer.Satisfied, ""},
		"ours, old":       {put(marker+"\nv0\n", 0o644), installer.Drifted, ""},
		"ours, half":      {put(marker, 0o644), installer.Drifted, ""},
		"ours, mode":      {put(marker+"\nv1\n", 0o600), installer.Drifted, ""},
		"ours, writable":  {put(marker+"\nv1\n", 0o666), installer.Drifted, ""},
		"somebody's":      {put("v1\n", 0o644), installer.Foreign, "ls -ld " + path},
		"empty":           {put("", 0o644), installer.Foreign, "ls -ld " + path},
		"marker too late": {put(strings.Repeat("x", 2000)+marker, 0o644), installer.Foreign, "ls -ld " + path},
		"folder":          {func(_ *testing.T, root string) { os.MkdirAll(root+path, 0o755) }, installer.Foreign, "ls -ld " + path},
		"link to ours": {func(t *testing.T, root string) {
			hosttest.Put(t, root, "/etc/minhost/b", marker+"\nv1\n", 0o644)
			os.Symlink("b", root+path)
		}, installer.Foreign, "ls -ld " + path},
		"folder for everybody": {func(t *testing.T, root string) {
			put(marker+"\nv1\n", 0o644)(t, root)
			os.Chmod(root+"/etc/minhost", 0o777)
		}, installer.Blocked, "ls -ld /etc/minhost"},
		"link above": {func(t *testing.T, root string) { os.Symlink("tmp", root+"/etc") }, installer.Blocked, "ls -ld /etc"},
	} {
		root := hosttest.Root(t)
		tc.prepare(t, root)
		before := hosttest.Snapshot(root)
		gate, tally := hosttest.Count()
		obs, err := version(hosttest.OpenDisk(t, root, gate), "v1").Probe(ctx)
		if err != nil || obs.State != tc.want || obs.Next != tc.next || obs.Loses == "" || obs.Detail == "" {
			t.Errorf("%s: %+v %v, want %v and %q", name, obs, err, tc.want, tc.next)
		}
		if len(obs.Files) != 1 || obs.Files[0].Path != path || obs.Files[0].Mode != 0o644 {
			t.Errorf("%s: files %+v", name, obs.Files)
		}
		if tally.N() > 0 || len(hosttest.Diff(before, hosttest.Snapshot(root))) > 0 {
			t.Errorf("%s: the probe changes the host: %v", name, tally.Changes())
		}
	}
}

func TestSpecWithoutItsOwnMarker(t *testing.T) {
	d := hosttest.OpenDisk(t, hosttest.Root(t), nil)
	s := filestep.New(d, filestep.Spec{ID: "a", Path: path, Marker: marker, Content: []byte("bare")})
	if _, err := s.Probe(ctx); err == nil {
		t.Error("a file is wanted that the next version would not know as ours")
	}
}

func TestLargeContentGoesByItsHash(t *testing.T) {
	d := hosttest.OpenDisk(t, hosttest.Root(t), nil)
	for _, content := range []string{strings.Repeat("x", 100<<10), "\xff\xfe"} {
		obs, err := filestep.New(d, filestep.Spec{ID: "a", Path: path, Content: []byte(content)}).Probe(ctx)
		whole := installer.File{Content: []byte(content)}
		if err != nil || obs.Files[0].Content != nil || obs.Files[0].Digest != whole.Hash() {
			t.Errorf("%v %+v", err, obs.Files[0])
		}
	}
}

// world is one host with an engine for each version of minhost.
type world struct {
	t      *testing.T
	root   string
	before map[string]string
}

func newWorld(t *testing.T, prepare func(root string)) world {
	t.Helper()
	root := hosttest.Root(t)
	hosttest.Put(t, root, "/var/lib/x", "", 0o644)
	hosttest.Put(t, root, "/etc/hosts", "", 0o644)
	if prepare != nil {
		prepare(root)
	}
	return world{t, root, hosttest.Snapshot(root)}
}

func (w world) engine(v string, gate host.Gate) *installer.Engine {
	d := hosttest.OpenDisk(w.t, w.root, gate)
	return installer.New([]installer.Step{version(d, v)}, host.NewStore(d, hosttest.JournalPath), "boot", nil)
}

func (w world) apply(v string) {
	w.t.Helper()
	if _, err := w.engine(v, nil).Apply(ctx, installer.Options{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w world) undone(v string) {
	w.t.Helper()
	if err := w.engine(v, nil).Undo(ctx); err != nil {
		w.t.Error(err)
	}
	if diff := hosttest.Diff(w.before, hosttest.Snapshot(w.root)); len(diff) > 0 {
		w.t.Errorf("after undo: %q", diff)
	}
}

func TestUndoOfAnUpgrade(t *testing.T) {
	for name, prepare := range map[string]func(root string){
		"nothing before": nil,
		"our file before": func(root string) {
			hosttest.Put(t, root, path, marker+"\nv0\n", 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, prepare)
			w.apply("v1")
			w.apply("v2")
			w.undone("v3") // by a version that never applied
		})
	}
}

// TestUndoOfACutUpgrade: the bytes of v1 are there, and v2 was noted.
func TestUndoOfACutUpgrade(t *testing.T) {
	for n := 1; ; n++ {
		w := newWorld(t, nil)
		w.apply("v1")
		gate, _ := hosttest.Cut(n)
		_, err := w.engine("v2", gate).Apply(ctx, installer.Options{})
		w.undone("v2")
		if err == nil {
			return
		}
	}
}

func TestIdenticalFileThatWasThereStays(t *testing.T) {
	w := newWorld(t, func(root string) { hosttest.Put(t, root, path, marker+"\nv1\n", 0o644) })
	w.apply("v1")
	w.undone("v1")
}

func TestEditedFileStaysAndIsReported(t *testing.T) {
	w := newWorld(t, nil)
	w.apply("v1")
	edited := marker + "\nv1 and more\n"
	hosttest.Put(t, w.root, path, edited, 0o644)
	for range 2 {
		err := w.engine("v1", nil).Undo(ctx)
		if err == nil || !strings.Contains(err.Error(), "cat "+path) || !strings.Contains(err.Error(), "rm "+path) {
			t.Errorf("not reported: %v", err)
		}
		if b, err := os.ReadFile(w.root + path); err != nil || string(b) != edited {
			t.Errorf("%q %v", b, err)
		}
	}
	if err := os.Remove(w.root + path); err != nil {
		t.Fatal(err)
	}
	w.undone("v1")
}

func TestFileReplacedByALinkStays(t *testing.T) {
	w := newWorld(t, nil)
	w.apply("v1")
	if err := os.Rename(w.root+path, w.root+path+".theirs"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.conf.theirs", w.root+path); err != nil {
		t.Fatal(err)
	}
	if err := w.engine("v1", nil).Undo(ctx); err == nil {
		t.Error("not reported")
	}
	if _, err := os.ReadFile(w.root + path); err != nil {
		t.Error(err)
	}
}

func TestFileThatIsGoneIsNoError(t *testing.T) {
	w := newWorld(t, nil)
	w.apply("v1")
	if err := os.RemoveAll(w.root + "/etc/minhost"); err != nil {
		t.Fatal(err)
	}
	w.undone("v1")
}

// TestFolderThatSomebodyUsesStays: /etc/resolver, say, with another program's file in it by now.
func TestFolderThatSomebodyUsesStays(t *testing.T) {
	w := newWorld(t, nil)
	w.apply("v1")
	hosttest.Put(t, w.root, "/etc/minhost/theirs", "x", 0o644)
	if err := w.engine("v1", nil).Undo(ctx); err != nil {
		t.Error(err)
	}
	var left []string
	for _, d := range hosttest.Diff(w.before, hosttest.Snapshot(w.root)) {
		left = append(left, strings.SplitN(d, ":", 2)[0])
	}
	if want := []string{"+ etc/minhost", "+ etc/minhost/theirs"}; !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
}

// TestForeignBetweenProbeAndChange: Apply looks again itself.
func TestForeignBetweenProbeAndChange(t *testing.T) {
	root := hosttest.Root(t)
	hosttest.Put(t, root, path, "theirs", 0o644)
	err := version(hosttest.OpenDisk(t, root, nil), "v1").Apply(ctx, &installer.Record{})
	if err == nil || !strings.Contains(err.Error(), "ls -ld") {
		t.Error(err)
	}
	if b, _ := os.ReadFile(root + path); string(b) != "theirs" {
		t.Errorf("overwritten: %q", b)
	}
}

func TestTooLargeToKeep(t *testing.T) {
	w := newWorld(t, func(root string) {
		hosttest.Put(t, root, path, marker+strings.Repeat("x", 2<<20), 0o644)
	})
	if _, err := w.engine("v1", nil).Apply(ctx, installer.Options{}); err == nil || !strings.Contains(err.Error(), "too many to keep") {
		t.Error(err)
	}
	w.undone("v1")
}
