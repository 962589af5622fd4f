package launchd

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

// onDisk is a step on an empty root with a scripted launchctl.
func onDisk(t *testing.T, j Job, works func(context.Context) error, answers map[string][]answer) (*Step, string, *hosttest.Runner, *script) {
	t.Helper()
	root := hosttest.Root(t)
	for _, d := range []string{"/Library/LaunchDaemons", "/private/var/log"} {
		if err := os.MkdirAll(root+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ctl, r, s := control(answers)
	return New(hosttest.OpenDisk(t, root, nil), ctl, Spec{ID: "job", Describe: "d", Loses: "l", Job: j, LogOwner: os.Getuid(), Works: works}), root, r, s
}

// TestEvidence: launchd's word is not believed: the step waits for the job's own, and fails without it.
func TestEvidence(t *testing.T) {
	asked := 0
	works := func(context.Context) error {
		if asked++; asked < 5 {
			return errors.New("no answer")
		}
		return nil
	}
	s, _, _, _ := onDisk(t, jobs()["helper"], works, map[string][]answer{"print": {absent}})
	if err := s.Apply(t.Context(), &installer.Record{}); err != nil || asked != 5 {
		t.Errorf("%v after %d questions", err, asked)
	}
	never := func(context.Context) error { return errors.New("no answer") }
	s, _, _, _ = onDisk(t, jobs()["helper"], never, map[string][]answer{"print": {absent}})
	if err := s.Apply(t.Context(), &installer.Record{}); err == nil || !strings.Contains(err.Error(), "no answer") || !strings.Contains(err.Error(), "tail /private/var/log") {
		t.Errorf("%v", err)
	}
}

// TestStates: a one-shot job that ran and ended is as well as can be, whatever word launchd has for it;
// one that is loaded but silent is not.
func TestStates(t *testing.T) {
	ended := answer{stdout: string(fixture(t, "launchctl-print-02-oneshot-exited-0.txt"))}
	running := answer{stdout: string(fixture(t, "launchctl-print-01-running.txt"))}
	dead := func(context.Context) error { return errors.New("no answer") }
	for name, c := range map[string]struct {
		job    string
		works  func(context.Context) error
		print  answer
		list   string
		want   installer.State
		detail string
	}{
		"one-shot, ended":   {"loopback", nil, ended, "", installer.Satisfied, "not running"},
		"running, silent":   {"helper", dead, running, "", installer.Drifted, "no answer"},
		"running, answers":  {"helper", func(context.Context) error { return nil }, running, "", installer.Satisfied, "it answers"},
		"not loaded":        {"helper", nil, absent, "", installer.Drifted, "Login Items"},
		"disabled":          {"loopback", nil, ended, "\"dev.minimal.loopback\" => disabled", installer.Drifted, "disabled"},
		"another, disabled": {"loopback", nil, ended, "\"dev.minimal.loopback2\" => disabled", installer.Satisfied, ""},
	} {
		s, _, _, script := onDisk(t, jobs()[c.job], nil, map[string][]answer{"print": {absent}})
		if err := s.Apply(t.Context(), &installer.Record{}); err != nil {
			t.Fatal(err)
		}
		script.answers = map[string][]answer{"print": {c.print}, "print-disabled": {{stdout: c.list}}}
		s.spec.Works = c.works
		o, err := s.Probe(t.Context())
		if err != nil || o.State != c.want || !strings.Contains(o.Detail, c.detail) {
			t.Errorf("%s: %v %+v", name, err, o)
		}
	}
}

// TestModes: launchd refuses a plist that others can write; no umask may make it one. The log is the job's
// user's.
func TestModes(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	s, root, _, _ := onDisk(t, jobs()["helper"], nil, map[string][]answer{"print": {absent}})
	var rec installer.Record
	if err := s.Apply(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{s.spec.Job.Path(), s.spec.Job.Log} {
		if fi, err := os.Stat(root + p); err != nil || fi.Mode() != 0o644 {
			t.Errorf("%s: %v %v", p, fi.Mode(), err)
		}
	}
	if err := s.Undo(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	if left := hosttest.Snapshot(root + "/Library/LaunchDaemons"); len(left) != 1 {
		t.Errorf("%v", left)
	}
}

// TestKicked: only another program: the job is started again, stays loaded, and the file is written when it
// works. When that does not help it is loaded anew.
func TestKicked(t *testing.T) {
	running := answer{stdout: string(fixture(t, "launchctl-print-01-running.txt"))}
	for _, helps := range []bool{true, false} {
		s, root, r, script := onDisk(t, jobs()["helper"], nil, map[string][]answer{"print": {absent}})
		if err := s.Apply(t.Context(), &installer.Record{}); err != nil {
			t.Fatal(err)
		}
		next := jobs()["helper"]
		next.SHA256 = strings.Repeat("e", 64)
		kicked := false
		n := New(s.fs, s.control, Spec{ID: "job", Describe: "d", Loses: "l", Job: next, Works: func(context.Context) error {
			line := r.Ran()[len(r.Ran())-1]
			kicked = kicked || strings.Contains(line, "kickstart -k")
			if !helps && !strings.Contains(line, "bootstrap") {
				return errors.New("not yet")
			}
			return nil
		}})
		script.answers = map[string][]answer{"print": {running, running, running, absent}}
		if err := n.Apply(t.Context(), &installer.Record{}); err != nil || !kicked {
			t.Errorf("helps %v: %v, kicked %v", helps, err, kicked)
		}
		if again := strings.Count(verbs(r), "bootstrap"); (again == 1) != helps {
			t.Errorf("helps %v: %s", helps, verbs(r))
		}
		if b, _ := os.ReadFile(root + next.Path()); !strings.Contains(string(b), next.SHA256) {
			t.Error("the file still names the old program")
		}
	}
}

// TestBack: a job that cannot be loaded anew gets its old file back, and runs from it.
func TestBack(t *testing.T) {
	s, root, r, script := onDisk(t, jobs()["helper"], nil, map[string][]answer{"print": {absent}})
	if err := s.Apply(t.Context(), &installer.Record{}); err != nil {
		t.Fatal(err)
	}
	next := jobs()["helper"]
	next.Program = append(next.Program, "--new")
	n := New(s.fs, s.control, Spec{ID: "job", Describe: "d", Loses: "l", Job: next})
	script.answers = map[string][]answer{"print": {absent}, "bootstrap": {{code: 122}, {}}}
	if err := n.Apply(t.Context(), &installer.Record{}); err == nil || !strings.Contains(err.Error(), "owner or mode") {
		t.Errorf("%v", err)
	}
	if b, _ := os.ReadFile(root + next.Path()); strings.Contains(string(b), "--new") || strings.Count(verbs(r), "bootstrap") != 3 {
		t.Errorf("%s\n%s", verbs(r), b)
	}
}
