package hosttest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
)

// pair is a step that makes a folder with a file in it, and can be wrong in one way at a time.
type pair struct {
	d   Disk
	bug string
}

func (p pair) ID() installer.ID             { return "pair" }
func (p pair) Describe() string             { return "make a folder with a file" }
func (p pair) Lifetime() installer.Lifetime { return installer.Persistent }
func (p pair) Required() bool               { return true }

func (p pair) Probe(context.Context) (installer.Observation, error) {
	looked := "/p/f"
	if p.bug == "looks at a proxy" {
		looked = "/p"
	}
	_, err := p.d.Lstat(looked)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return installer.Observation{State: installer.Absent}, nil
	case p.bug == "never satisfied":
		return installer.Observation{State: installer.Drifted}, nil
	}
	return installer.Observation{State: installer.Satisfied}, err
}

func (p pair) Apply(_ context.Context, r *installer.Record) error {
	err := p.d.Mkdir("/p", host.Attr{Mode: 0o755})
	if err != nil && (!errors.Is(err, fs.ErrExist) || p.bug == "cannot go on") {
		return err
	}
	if p.bug == "keeps too late" {
		if err := r.Keep("made"); err != nil {
			return err
		}
	}
	return p.d.WriteFile("/p/f", []byte("x"), host.Attr{Mode: 0o644})
}

func (p pair) Undo(_ context.Context, r installer.Record) error {
	if p.bug == "undoes nothing" {
		return nil
	}
	if ok, _ := r.Kept(new(string)); p.bug == "keeps too late" && !ok {
		return nil
	}
	for _, path := range []string{"/p/f", "/p"} {
		err := p.d.Remove(path)
		if errors.Is(err, fs.ErrNotExist) && p.bug != "is strict" {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TestCutterFindsBugs: each of these steps passes an apply and most pass an undo.
func TestCutterFindsBugs(t *testing.T) {
	for bug, want := range map[string]string{
		"":                 "",
		"undoes nothing":   "without a cut",
		"never satisfied":  "not finished",
		"looks at a proxy": "elsewhere",
		"cannot go on":     "apply again",
		"keeps too late":   "apply cut before",
		"is strict":        "undo: ",
	} {
		c := &cutter{t: t, scenario: Files(nil, func(d Disk) []installer.Step { return []installer.Step{pair{d, bug}} })}
		changes := c.everywhere()
		got := strings.Join(c.failed, "\n")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: found %q, want %q in it", bug, got, want)
		}
		if len(changes) == 0 {
			t.Errorf("%q: no changes", bug)
		}
	}
}

// TestSnapshot: each kind of difference is one.
func TestSnapshot(t *testing.T) {
	make := func(change func(root string)) map[string]string {
		root := Root(t)
		Put(t, root, "/d/f", "x", 0o644)
		if err := os.Symlink("f", root+"/d/l"); err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(root)
		}
		return Snapshot(root)
	}
	before := make(nil)
	for name, tc := range map[string]struct {
		change func(root string)
		want   string
	}{
		"nothing": {nil, ""},
		"content": {func(r string) { Put(t, r, "/d/f", "y", 0o644) }, "! d/f"},
		"mode":    {func(r string) { os.Chmod(r+"/d/f", 0o600) }, "! d/f"},
		"folder":  {func(r string) { os.Chmod(r+"/d", 0o700) }, "! d:"},
		"new":     {func(r string) { Put(t, r, "/d/.g", "", 0o644) }, "+ d/.g"},
		"gone":    {func(r string) { os.Remove(r + "/d/f") }, "- d/f"},
		"link":    {func(r string) { os.Remove(r + "/d/l"); os.Symlink("g", r+"/d/l") }, "! d/l"},
	} {
		diff := Diff(before, make(tc.change))
		if (tc.want == "") != (len(diff) == 0) || len(diff) > 1 || (len(diff) == 1 && !strings.HasPrefix(diff[0], tc.want)) {
			t.Errorf("%s: %q, want %q", name, diff, tc.want)
		}
	}
}
