package roottest

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

// base is empty and root's in the lab.
const base = "/var/lib"

// fakeProgram stands for the minhost binary: it says how it was called, by whom and from where.
const fakeProgram = `#!/bin/sh
{ id -u; echo "$0"; ls -ldn "${0%/*}" "$0" | cut -c1-10; umask; for a; do echo "<$a>"; done; } >/var/lib/called
exit "$(cat /var/lib/status)"
`

// lab prepares base and returns the script for a program path, with the binary in a folder that
// everybody can write to.
func lab(t *testing.T, program string, status string) (script, binary string) {
	t.Helper()
	hosttest.Put(t, base, "status", status, 0o644)
	dir := t.TempDir()
	binary = filepath.Join(dir, "it's $(id)\nhere", "-minhost")
	hosttest.Put(t, "/", binary, fakeProgram, 0o666)
	t.Cleanup(func() {
		names, _ := os.ReadDir(base)
		for _, n := range names {
			os.RemoveAll(filepath.Join(base, n.Name()))
		}
	})
	sum := sha256.Sum256([]byte(fakeProgram))
	s, err := installer.Script(installer.Plan{}, installer.ScriptInfo{Binary: binary, SHA256: hex.EncodeToString(sum[:]),
		Program: program, Args: []string{"--operator", "a b'c", "*", ""}})
	if err != nil {
		t.Fatal(err)
	}
	script = filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte(s), 0o644); err != nil {
		t.Fatal(err)
	}
	return script, binary
}

func run(t *testing.T, script string) (string, int) {
	t.Helper()
	cmd := exec.Command("sh", script)
	cmd.Env = []string{"PATH=/nonexistent"}
	cmd.Path = "/bin/sh"
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// TestRun: the copy runs as root from a folder only root can enter, with exactly its arguments;
// nothing is left of it, whether it succeeds or fails.
func TestRun(t *testing.T) {
	for _, status := range []string{"0", "3"} {
		for _, program := range []string{base + "/minhost/deep/minhost", base + "/minhost"} {
			script, _ := lab(t, program, status)
			before := hosttest.Snapshot(base)
			out, code := run(t, script)
			if (status == "0" && code != 0) || (status == "3" && code != 3) {
				t.Fatalf("exit %d, want %s: %s", code, status, out)
			}
			called, err := os.ReadFile(base + "/called")
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(string(called)), "\n")
			digest := installer.Plan{}.Digest()
			want := "0 drwx------ -rwx------ 0022 <finalize-install> <--apply> <--expect> <" + digest + "> <--operator> <a b'c> <*> <>"
			if got := lines[0] + " " + strings.Join(lines[2:], " "); got != want {
				t.Errorf("called as\n%s, want\n%s", got, want)
			}
			if !strings.HasPrefix(lines[1], base+"/.minhost-install.") {
				t.Errorf("ran from %s", lines[1])
			}
			os.Remove(base + "/called")
			if diff := hosttest.Diff(before, hosttest.Snapshot(base)); len(diff) > 0 {
				t.Errorf("left: %q", diff)
			}
		}
	}
}

// TestRefusals: nothing is run and nothing is left.
func TestRefusals(t *testing.T) {
	const program = base + "/a/b/minhost"
	for name, tc := range map[string]struct {
		prepare func(t *testing.T, binary string)
		want    string
	}{
		"binary changed": {func(t *testing.T, binary string) {
			must(t, os.WriteFile(binary, []byte(fakeProgram+"#"), 0o666))
		}, "the plan has"},
		"binary gone": {func(t *testing.T, binary string) { must(t, os.Remove(binary)) }, "cp: "},
		"folder of a user": {func(t *testing.T, _ string) {
			must(t, os.Mkdir(base+"/a", 0o755))
			must(t, os.Chown(base+"/a", 1000, 0))
		}, "ls -ld " + base + "/a"},
		"folder for the group":  {folder(0o775), "ls -ld " + base + "/a"},
		"folder for everybody":  {folder(0o757), "ls -ld " + base + "/a"},
		"sticky is no excuse":   {folder(0o777 | os.ModeSticky), "ls -ld " + base + "/a"},
		"link to a good folder": {func(t *testing.T, _ string) { must(t, os.Symlink("/usr", base+"/a")) }, "ls -ld " + base + "/a"},
		"link to nowhere":       {func(t *testing.T, _ string) { must(t, os.Symlink("/none", base+"/a")) }, "in the way"},
		"file in the way":       {func(t *testing.T, _ string) { hosttest.Put(t, base, "a", "", 0o644) }, "in the way"},
		"good below bad": {func(t *testing.T, _ string) {
			must(t, os.MkdirAll(base+"/a/b", 0o755))
			must(t, os.Chmod(base+"/a", 0o777))
		}, "ls -ld " + base + "/a"},
	} {
		t.Run(name, func(t *testing.T) {
			script, binary := lab(t, program, "0")
			tc.prepare(t, binary)
			before := hosttest.Snapshot(base)
			out, code := run(t, script)
			if code == 0 || !strings.Contains(out, tc.want) {
				t.Errorf("exit %d, %q lacks %q", code, out, tc.want)
			}
			if diff := hosttest.Diff(before, hosttest.Snapshot(base)); len(diff) > 0 {
				t.Errorf("changed: %q", diff)
			}
		})
	}
}

func folder(mode os.FileMode) func(*testing.T, string) {
	return func(t *testing.T, _ string) {
		must(t, os.Mkdir(base+"/a", 0o755))
		must(t, os.Chmod(base+"/a", mode))
	}
}

func TestRefusesWithoutRoot(t *testing.T) {
	script, _ := lab(t, base+"/minhost", "0")
	b, err := os.ReadFile(script)
	must(t, err)
	cmd := exec.Command("/bin/sh", "-s")
	cmd.Stdin = strings.NewReader(string(b))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "not root; run it again: sudo sh") {
		t.Errorf("%v: %s", err, out)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
