package initscript

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/hosttest"
	"github.com/gominimal/minhost/linux/systemd"
	"github.com/gominimal/minhost/verify/golden"
)

const program = "/usr/local/lib/minhost/minhost"

var kinds = []systemd.Kind{systemd.OpenRC, systemd.SysVinit}

func TestScriptGolden(t *testing.T) {
	for _, kind := range kinds {
		got, err := Script(kind, program)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, filepath.Join("testdata", string(kind)), got)
	}
	for _, bad := range []string{"minhost", "/a b", "/a;b", "/a/../b", ""} {
		if _, err := Script(systemd.OpenRC, bad); err == nil {
			t.Errorf("%q is rendered", bad)
		}
	}
	if _, err := Script(systemd.Standalone, program); err == nil {
		t.Error("a script for a host without init")
	}
}

// initOf models both managers: their program makes or removes the link, and objects to the wrong order.
type initOf struct {
	root  string
	calls []string
}

func (i *initOf) Run(_ context.Context, c host.Command) (host.Result, error) {
	i.calls = append(i.calls, c.String())
	_, err := os.Lstat(filepath.Join(i.root, Path))
	there := err == nil
	link := func(rel string, add bool) error {
		path := filepath.Join(i.root, rel)
		if !add {
			return os.Remove(path)
		}
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(Path, path))
	}
	switch strings.Join(append([]string{filepath.Base(c.Path)}, c.Args...), " ") {
	case "rc-update add minhost-boot boot":
		err = link("/etc/runlevels/boot/minhost-boot", true)
	case "rc-update delete minhost-boot boot":
		err = link("/etc/runlevels/boot/minhost-boot", false)
	case "update-rc.d minhost-boot defaults":
		err = link("/etc/rcS.d/S03minhost-boot", true)
	case "update-rc.d minhost-boot remove":
		if there {
			return host.Result{}, errors.New("the script is still there")
		}
		return host.Result{}, link("/etc/rcS.d/S03minhost-boot", false)
	case "rc-service minhost-boot zap":
		err = os.Remove(filepath.Join(i.root, started))
	default:
		err = errors.New("unknown call")
	}
	if !there && err == nil {
		err = errors.New("no script")
	}
	return host.Result{}, err
}

func newStep(t *testing.T, kind systemd.Kind) (*Step, *initOf, string) {
	t.Helper()
	root := hosttest.Root(t)
	if err := os.MkdirAll(filepath.Join(root, "etc/init.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	i := &initOf{root: root}
	env := systemd.Env{Exists: func(p string) bool {
		return p == "/sbin/rc-update" || p == "/sbin/rc-service" || p == "/usr/sbin/update-rc.d"
	},
		ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist }}
	s, ok, err := New(hosttest.OpenDisk(t, root, nil), i, env, kind, program)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	return s, i, root
}

func state(t *testing.T, s *Step, want installer.State) {
	t.Helper()
	obs, err := s.Probe(t.Context())
	if err != nil || obs.State != want || (want == installer.Satisfied) != (obs.Loses == "") {
		t.Errorf("%s (%s), loses %q, %v; want %s", obs.State, obs.Detail, obs.Loses, err, want)
	}
}

func TestCycle(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			s, i, root := newStep(t, kind)
			state(t, s, installer.Absent)
			var rec installer.Record
			if err := s.Apply(t.Context(), &rec); err != nil {
				t.Fatal(err)
			}
			state(t, s, installer.Satisfied)
			calls := len(i.calls)
			if err := s.Apply(t.Context(), &rec); err != nil || len(i.calls) != calls {
				t.Errorf("a second apply: %v, calls %v", err, i.calls)
			}
			links, err := filepath.Glob(filepath.Join(root, s.manager.linked))
			if err != nil || len(links) != 1 {
				t.Fatal(links, err)
			}
			if err := os.Remove(links[0]); err != nil {
				t.Fatal(err)
			}
			state(t, s, installer.Drifted)
			if err := s.Apply(t.Context(), &rec); err != nil {
				t.Fatal(err)
			}
			hosttest.Put(t, root, started, "", 0o644)
			for range 2 { // the second finds nothing
				if err := s.Undo(t.Context(), rec); err != nil {
					t.Error(err)
				}
			}
			state(t, s, installer.Absent)
			if links, _ := filepath.Glob(filepath.Join(root, s.manager.linked)); len(links) != 0 {
				t.Errorf("left: %v", links)
			}
			if _, err := os.Lstat(filepath.Join(root, started)); kind == systemd.OpenRC && err == nil {
				t.Error("OpenRC believes that it runs")
			}
		})
	}
}

// TestEditedStays: a script that an admin changed stays where it is, and so does its link.
func TestEditedStays(t *testing.T) {
	s, _, root := newStep(t, systemd.SysVinit)
	var rec installer.Record
	if err := s.Apply(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	hosttest.Put(t, root, Path, "#!/bin/sh\n"+Marker+"\n# mine\n", 0o755)
	if err := s.Undo(t.Context(), rec); err == nil {
		t.Error("undo of an edited script says nothing")
	}
	if in, err := s.linked(); !in || err != nil {
		t.Errorf("linked %v, %v", in, err)
	}
}

// TestRunlevel: before the network, wherever that is.
func TestRunlevel(t *testing.T) {
	for network, want := range map[string]string{"/etc/runlevels/boot/networking": "boot", debianNetwork: "sysinit"} {
		env := systemd.Env{Exists: func(p string) bool { return p == network || p == "/sbin/rc-update" }}
		s, ok, err := New(nil, nil, env, systemd.OpenRC, program)
		if err != nil || !ok || s.manager.linked != "/etc/runlevels/"+want+"/minhost-boot" || s.teller.add[2] != want {
			t.Errorf("%s: %+v, %v %v", network, s, ok, err)
		}
	}
}

func TestNoManager(t *testing.T) {
	env := systemd.Env{Exists: func(string) bool { return false }}
	for _, kind := range []systemd.Kind{systemd.Standalone, systemd.OpenRC, systemd.SysVinit} {
		if _, ok, err := New(nil, nil, env, kind, program); ok || err != nil {
			t.Errorf("%s: %v, %v", kind, ok, err)
		}
	}
}
