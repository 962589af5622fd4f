package apparmor

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

const program = "/usr/local/lib/minhost/minhost"

// kernel models AppArmor: which profiles are loaded, and that a namespace can be had with ours.
type kernel struct {
	root  string
	calls []string
}

func (k *kernel) Run(_ context.Context, c host.Command) (host.Result, error) {
	k.calls = append(k.calls, strings.Join(append([]string{c.Path}, c.Args...), " "))
	text, err := os.ReadFile(filepath.Join(k.root, c.Args[1]))
	if err != nil || !strings.Contains(string(text), "\nprofile minhost "+program+" flags=(unconfined) {\n  userns,\n") {
		return host.Result{}, errors.New("syntax error")
	}
	all := "docker-default (enforce)\nminhostile (enforce)\n"
	if c.Args[0] == "--replace" {
		all += "minhost (unconfined)\n"
	}
	return host.Result{}, os.WriteFile(filepath.Join(k.root, loaded), []byte(all), 0o644)
}

func (k *kernel) try(context.Context) error {
	all, err := os.ReadFile(filepath.Join(k.root, loaded))
	if err == nil && !strings.Contains(string(all), "minhost (") {
		return errors.New("permission denied")
	}
	return err
}

// lab is a host whose restriction has that value, "" for none.
func lab(t *testing.T, restriction string) (Step, *kernel) {
	t.Helper()
	k := &kernel{root: t.TempDir()}
	for path, text := range map[string]string{Restriction: restriction, loaded: "docker-default (enforce)\nminhostile (enforce)\n", "/etc/apparmor.d/usr.bin.other": "x"} {
		if text == "" {
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(k.root+path), 0o755), os.WriteFile(k.root+path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	disk, err := host.OpenDisk(k.root, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { disk.Close() })
	return New(disk, k, "/sbin/apparmor_parser", program, k.try), k
}

func probe(t *testing.T, s Step, want installer.State, detail string) {
	t.Helper()
	obs, err := s.Probe(t.Context())
	if err != nil || obs.State != want || !strings.Contains(obs.Detail, detail) || (want == installer.Satisfied) != (obs.Loses == "") {
		t.Errorf("%+v, %v; want %s, %q", obs, err, want, detail)
	}
}

// TestContent: the real parser and kernel take these bytes (verify/vmlab/vm, on Debian 13).
func TestContent(t *testing.T) {
	want, err := os.ReadFile("testdata/minhost")
	if err != nil || string(content(program)) != string(want) {
		t.Errorf("%v: %s", err, content(program))
	}
}

// TestUnrestricted: nothing is tried, and nothing to do.
func TestUnrestricted(t *testing.T) {
	for _, value := range []string{"", "0\n"} {
		s, _ := lab(t, value)
		s.Try = func(context.Context) error { return errors.New("tried") }
		probe(t, s, installer.Satisfied, "from no program")
		if s.Required() || s.Lifetime() != installer.Persistent {
			t.Error("required, or not persistent")
		}
	}
}

// TestRestricted: the effect decides, not the file.
func TestRestricted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the file is root's")
	}
	s, k := lab(t, "1\n")
	before := hosttest.Snapshot(k.root)
	probe(t, s, installer.Absent, "permission denied")
	var rec installer.Record
	if err := s.Apply(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	probe(t, s, installer.Satisfied, "as wanted")
	// Unloaded by somebody, with the file in place.
	if _, err := k.Run(t.Context(), host.Command{Args: []string{"--remove", Profile}}); err != nil {
		t.Fatal(err)
	}
	probe(t, s, installer.Drifted, "no effect: permission denied")
	if err := s.Apply(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	if err := s.Undo(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	if want := "/sbin/apparmor_parser --remove " + Profile; k.calls[len(k.calls)-1] != want {
		t.Errorf("calls %q, want %q last", k.calls, want)
	}
	if now := hosttest.Snapshot(k.root); !maps.Equal(now, before) {
		t.Errorf("undo left %v, was %v", now, before)
	}
	// What is not loaded is not unloaded: the parser fails then.
	n := len(k.calls)
	if err := s.Undo(t.Context(), rec); err != nil || len(k.calls) != n {
		t.Errorf("second undo: %v, calls %v", err, k.calls[n:])
	}
}

// TestOthers: a profile of somebody else that helps is enough; a file of somebody else is left; without a
// parser nothing can be done.
func TestOthers(t *testing.T) {
	s, k := lab(t, "1\n")
	s.Try = func(context.Context) error { return nil }
	probe(t, s, installer.Satisfied, "gets user namespaces")
	s.Try, s.Parser = k.try, ""
	probe(t, s, installer.Blocked, "no apparmor_parser")
	if err := os.WriteFile(k.root+Profile, []byte("profile minhost /x {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	probe(t, s, installer.Foreign, "not minhost's")
}
