package install

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gominimal/minhost/verify/e2e/rig"
)

// plan is what a program that reads minhost/v1/plan relies on.
type plan struct {
	Schema   string
	Digest   string
	Finished bool
	Degraded []string
	Steps    []struct {
		ID, Describe, Lifetime, State, Detail, Loses, Next string
		Required, Private                                  bool
		Files                                              []struct {
			Path, Mode, SHA256 string
			Content            *string
		}
	}
}

// planOf reads the plan as a user sees it; the fields must be exactly those above.
func planOf(t *testing.T, c rig.Cmd, status int, flags ...string) plan {
	t.Helper()
	r := c.Run(t, append([]string{"finalize-install", "--json"}, flags...)...)
	r.Want(t, status)
	var p plan
	d := json.NewDecoder(strings.NewReader(r.Stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		t.Fatalf("%v: %v", err, r)
	}
	if p.Schema != "minhost/v1/plan" || len(p.Digest) != 64 || p.Degraded == nil {
		t.Fatalf("schema %q, digest %q, degraded %v", p.Schema, p.Digest, p.Degraded)
	}
	return p
}

func (p plan) states() map[string]string {
	m := map[string]string{}
	for _, s := range p.Steps {
		m[s.ID] = s.State
	}
	return m
}

var operator = []string{"--operator", rig.UserName}

// TestShowAndJSON: the plan of a bare and of a finished host, as root and as the operator. Both see
// the same digest, and looking writes nothing.
func TestShowAndJSON(t *testing.T) {
	before := rig.Bare(t)
	user := rig.Cmd{UID: rig.User}
	for _, finished := range []bool{false, true} {
		if finished {
			rig.Install(t)
		}
		status := 1
		if finished { // the helper vouches for what the operator cannot see
			status = 0
		}
		asRoot, asUser := planOf(t, rig.Cmd{}, status, operator...), planOf(t, user, status, operator...)
		if asRoot.Digest != asUser.Digest {
			t.Errorf("finished %v: digests differ:\n%+v\n%+v", finished, asRoot, asUser)
		}
		if mine := planOf(t, user, status); mine.Digest != asUser.Digest {
			t.Error("the operator of a plan is not who asks for it")
		}
		if other := planOf(t, rig.Cmd{}, status, "--operator", "0"); other.Digest == asRoot.Digest {
			t.Error("the digest does not cover for whom the host is prepared")
		}
		if asRoot.Finished != finished || asUser.Finished != finished {
			t.Errorf("finished: root %v, user %v, want %v", asRoot.Finished, asUser.Finished, finished)
		}
		ids := []string{"program", "operator", "range", "tree", "belt", "localhost", "table", "services", "units", "names"}
		var got []string
		for _, s := range asRoot.Steps {
			got = append(got, s.ID)
			if s.Describe == "" || s.Lifetime == "" || s.State != "satisfied" && (s.Detail == "" || s.Loses == "") {
				t.Errorf("step %+v leaves something out", s)
			}
			if s.State == "unknown" {
				t.Errorf("root does not know the state of %s", s.ID)
			}
		}
		degraded := []string{"units", "names"}
		if !finished {
			degraded = append([]string{"localhost"}, degraded...) // to be had, and not there yet
		}
		if !slices.Equal(got, ids) || !slices.Equal(asRoot.Degraded, degraded) {
			t.Errorf("steps %v, degraded %v", got, asRoot.Degraded)
		}
		if f := asUser.Steps[0].Files; len(f) != 1 || f[0].Path != rig.Program || f[0].Mode != "0755" || len(f[0].SHA256) != 64 {
			t.Errorf("files of step program: %+v", f)
		}
		for _, c := range []rig.Cmd{{}, user} {
			r := c.Run(t, append([]string{"finalize-install", "--show"}, operator...)...)
			r.Want(t, 0)
			if !strings.HasPrefix(r.Stdout, "STEP") || r.Stderr != "" {
				t.Error(r)
			}
			both := c.Run(t, append([]string{"finalize-install", "--show", "--json"}, operator...)...)
			both.Want(t, 0)
		}
	}
	rig.Undo(t)
	before.Same(t)
}

// script makes the script as the operator does.
func script(t *testing.T, c rig.Cmd) []byte {
	t.Helper()
	r := c.Run(t, append([]string{"finalize-install", "--show", "--script"}, operator...)...)
	r.Want(t, 0, "STEP")
	return []byte(r.Stdout)
}

// shell runs a script as root, as an admin would after reading it.
func shell(t *testing.T, text []byte) rig.Result {
	t.Helper()
	return rig.Cmd{Path: "/bin/sh", Stdin: bytes.NewReader(text)}.Run(t, "-s")
}

// TestScript: the script that an operator makes is good sh, and run as root it does what the
// program does itself.
func TestScript(t *testing.T) {
	before := rig.Bare(t)
	rig.Install(t)
	direct, directSnapshot := planOf(t, rig.Cmd{}, 0, operator...), rig.Take(t)
	rig.Undo(t)
	text := script(t, rig.Cmd{UID: rig.User})
	rig.Cmd{Path: "/bin/sh", Stdin: bytes.NewReader(text)}.Run(t, "-n").Want(t, 0)
	if r := (rig.Cmd{Path: "/usr/bin/shellcheck", Stdin: bytes.NewReader(text)}).Run(t, "-"); r.Status != 0 {
		t.Errorf("shellcheck: %v", r)
	}
	// The comment above tells what this user could see.
	commands := func(b []byte) string { return string(b[bytes.Index(b, []byte("\nset -eu\n")):]) }
	if got := commands(script(t, rig.Cmd{})); got != commands(text) {
		t.Errorf("root gets another script than the operator:\n%s\nand\n%s", got, commands(text))
	}
	before.Same(t)
	rig.Cmd{UID: rig.User, Path: "/bin/sh", Stdin: bytes.NewReader(text)}.Run(t, "-s").Want(t, 1, "not root")
	before.Same(t)
	r := shell(t, text)
	r.Want(t, 0)
	if !strings.Contains(r.Stdout, "this host is ready") {
		t.Error(r)
	}
	got := planOf(t, rig.Cmd{}, 0, operator...)
	if got.Digest != direct.Digest {
		t.Errorf("the script ends elsewhere: %v, want %v", got.states(), direct.states())
	}
	var differ []string
	for _, line := range directSnapshot.Diff(rig.Take(t)) {
		// ids and numbers of this installation
		if !strings.Contains(line, " process ") && !strings.Contains(line, rig.Boxes+":") && !strings.Contains(line, rig.Mount+":") && !strings.Contains(line, rig.RunDir+"/") && !strings.Contains(line, rig.Journal) {
			differ = append(differ, line)
		}
	}
	if len(differ) > 0 {
		t.Errorf("the script leaves another host than the program:\n  %s", strings.Join(differ, "\n  "))
	}
	rig.Undo(t)
	before.Same(t)
}

// TestScriptRefuses: another host or another program than the plan was made for.
func TestScriptRefuses(t *testing.T) {
	before := rig.Bare(t)
	t.Run("host changed since", func(t *testing.T) {
		text := script(t, rig.Cmd{UID: rig.User})
		if err := os.MkdirAll(rig.Tree, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(rig.Tree, rig.Other, rig.Other); err != nil {
			t.Fatal(err)
		}
		now := rig.Take(t)
		shell(t, text).Want(t, 1, "nothing was changed", "next: minhost finalize-install --show")
		now.Same(t)
		if err := os.Remove(rig.Tree); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("program changed since", func(t *testing.T) {
		copied := t.TempDir() + "/minhost"
		b, err := os.ReadFile(rig.Binary(rig.Standard))
		if err == nil {
			err = os.WriteFile(copied, b, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		text := script(t, rig.Cmd{Path: copied})
		if err := os.WriteFile(copied, append(b, 0), 0o755); err != nil {
			t.Fatal(err)
		}
		shell(t, text).Want(t, 1, "sha256", "make a new plan")
		before.Same(t)
	})
}
