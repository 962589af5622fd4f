package installer_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/verify/golden"
)

// samplePlan has a row in every state, and text that must not reach a terminal as it is.
func samplePlan() installer.Plan {
	row := func(id installer.ID, what string, l installer.Lifetime, required bool, o installer.Observation) installer.Row {
		return installer.Row{ID: id, Describe: what, Lifetime: l, Required: required, Observation: o}
	}
	return installer.Plan{Rows: []installer.Row{
		row("program", "install the program", installer.Persistent, true, installer.Observation{
			State: installer.Absent, Detail: "/usr/local/lib/minhost/minhost is not there", Loses: "everything",
			Files: []installer.File{{Path: "/usr/local/lib/minhost/minhost", Mode: 0o755, Digest: strings.Repeat("ab", 32)}}}),
		row("unit", "write the unit", installer.Persistent, true, installer.Observation{
			State: installer.Drifted, Detail: "other content", Files: []installer.File{
				{Path: "/etc/systemd/system/it's a\nunit.service", Mode: 0o644, Content: []byte("# minhost\n\tExecStart=/bin/true $(id) `id`\r\nlast, no newline at the end: é")},
				{Path: "/etc/empty", Mode: 0o600, Content: []byte{}}}}),
		row("operators", "let uid 1000 call the helper", installer.Persistent, true, installer.Observation{
			State: installer.Unknown, Private: true, Next: "sudo minhost finalize-install --show"}),
		row("range", "have 254 loopback addresses\x1b[2J", installer.Boot, true, installer.Observation{State: installer.Satisfied}),
		row("table", "load the table", installer.Boot, true, installer.Observation{
			State: installer.Foreign, Detail: "a table \x1b[31mof somebody else", Next: "nft list table inet minhost"}),
		row("names", "resolve names natively", installer.Boot, false, installer.Observation{
			State: installer.Blocked, Detail: "systemd-resolved does not run", Loses: "names resolve with dig only"}),
	}}
}

func TestTable(t *testing.T) {
	p := samplePlan()
	golden.Check(t, filepath.Join("testdata", "plan.txt"), []byte(p.Table()))
	for i := range p.Rows {
		p.Rows[i].State = installer.Satisfied
	}
	if got := p.Table(); !strings.HasSuffix(got, "\n\nfinished\n") {
		t.Errorf("finished host: %q", got)
	}
}

func TestJSON(t *testing.T) {
	b, err := samplePlan().JSON()
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "plan.json"), b)
	b, err = installer.Plan{}.JSON()
	if err != nil || !strings.Contains(string(b), `"steps": []`) || !strings.Contains(string(b), `"finished": true`) {
		t.Errorf("empty plan: %s %v", b, err)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Error(err)
	}
}

// TestDigest changes one thing at a time.
func TestDigest(t *testing.T) {
	base := samplePlan().Digest()
	if len(base) != 64 {
		t.Fatalf("digest %q", base)
	}
	for name, tc := range map[string]struct {
		change func(r []installer.Row)
		same   bool
	}{
		"nothing":                 {func([]installer.Row) {}, true},
		"what only root sees":     {func(r []installer.Row) { r[2].State, r[2].Detail = installer.Absent, "no file" }, true},
		"detail":                  {func(r []installer.Row) { r[0].Detail, r[0].Loses, r[0].Next = "x", "y", "z" }, true},
		"content for its hash":    {func(r []installer.Row) { f := &r[1].Files[0]; f.Digest, f.Content = f.Hash(), nil }, true},
		"state":                   {func(r []installer.Row) { r[0].State = installer.Satisfied }, false},
		"path":                    {func(r []installer.Row) { r[1].Files[0].Path = "/etc/x" }, false},
		"mode":                    {func(r []installer.Row) { r[1].Files[0].Mode = 0o600 }, false},
		"content":                 {func(r []installer.Row) { r[1].Files[0].Content = []byte("x") }, false},
		"hash":                    {func(r []installer.Row) { r[0].Files[0].Digest = strings.Repeat("cd", 32) }, false},
		"describe":                {func(r []installer.Row) { r[2].Describe = "let uid 0 call the helper" }, false},
		"order":                   {func(r []installer.Row) { r[0], r[1] = r[1], r[0] }, false},
		"required":                {func(r []installer.Row) { r[0].Required = false }, false},
		"file of a private step":  {func(r []installer.Row) { r[2].Files = []installer.File{{Path: "/x"}} }, false},
		"a state becomes private": {func(r []installer.Row) { r[0].Private = true }, false},
	} {
		p := samplePlan()
		tc.change(p.Rows)
		if (p.Digest() == base) != tc.same {
			t.Errorf("%s: same digest is %v", name, !tc.same)
		}
	}
}

func sampleInfo() installer.ScriptInfo {
	return installer.ScriptInfo{Binary: "/home/user/it's $(id) \"here\"\nminhost", SHA256: strings.Repeat("ab", 32),
		Program: "/usr/local/lib/minhost/minhost", Args: []string{"--operator", "a b'c", "*", "$x", ""}}
}

func TestScript(t *testing.T) {
	s, err := installer.Script(samplePlan(), sampleInfo())
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "script.sh.golden"), []byte(s))
	if i := strings.IndexFunc(s, func(r rune) bool { return r > '~' || (r < ' ' && r != '\n' && r != '\t') }); i >= 0 {
		t.Errorf("byte %#x in the script", s[i])
	}
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(s), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("sh", "-n", file).CombinedOutput(); err != nil {
		t.Errorf("sh -n: %v\n%s", err, out)
	}
	t.Run("shellcheck", func(t *testing.T) {
		path, err := exec.LookPath("shellcheck")
		if errors.Is(err, exec.ErrNotFound) {
			if slices.Contains(strings.Split(os.Getenv("REQUIRE"), ","), "shellcheck") {
				t.Fatal("shellcheck: not installed, and REQUIRE lists it")
			}
			t.Skip("SKIP shellcheck: not installed")
		}
		if out, err := exec.Command(path, "--shell=sh", "--severity=style", file).CombinedOutput(); err != nil {
			t.Errorf("shellcheck: %v\n%s", err, out)
		}
	})
}

func TestScriptRefusesBadInput(t *testing.T) {
	for name, change := range map[string]func(*installer.ScriptInfo){
		"relative binary":  func(i *installer.ScriptInfo) { i.Binary = "bin/minhost" },
		"unclean program":  func(i *installer.ScriptInfo) { i.Program = "/usr/../tmp/x" },
		"program is root":  func(i *installer.ScriptInfo) { i.Program = "/" },
		"no sha256":        func(i *installer.ScriptInfo) { i.SHA256 = "" },
		"short sha256":     func(i *installer.ScriptInfo) { i.SHA256 = "abcd" },
		"sha256 with code": func(i *installer.ScriptInfo) { i.SHA256 = "$(id)" + strings.Repeat("a", 59) },
		"zero in argument": func(i *installer.ScriptInfo) { i.Args = []string{"a\x00b"} },
	} {
		info := sampleInfo()
		change(&info)
		if s, err := installer.Script(samplePlan(), info); err == nil || s != "" {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestQuote asks a real shell.
func TestQuote(t *testing.T) {
	for _, s := range []string{"", "plain/a_b-c.d", "a b", "it's", `"$HOME" $(id) \ ` + "`id`", "line\nend\n", "*", "~", "-n", "#x", "a=b", "\x01\xff", "é"} {
		out, err := exec.Command("sh", "-c", "printf '%s' "+installer.Quote(s)).Output()
		if err != nil || string(out) != s {
			t.Errorf("%q became %q (%v)", s, out, err)
		}
	}
}
