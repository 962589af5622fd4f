package resolverfile

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

// clock does not wait.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }
func (c *clock) Sleep(_ context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	return nil
}

// mac is a root with a resolver that reads the file.
func mac(t *testing.T) (*Step, string, *hosttest.Runner) {
	t.Helper()
	root := hosttest.Root(t)
	if err := os.MkdirAll(root+"/private/etc", 0o755); err != nil {
		t.Fatal(err)
	}
	r := hosttest.NewRunner(nil)
	r.On(scutilPath, func(host.Command) (host.Result, error) {
		if _, err := os.Stat(root + zone.Path()); err != nil {
			return host.Result{}, nil
		}
		return host.Result{Stdout: []byte("resolver #8\n  domain   : min.internal\n  nameserver[0] : 127.0.0.1\n  port     : 15353\n")}, nil
	})
	r.On(dscacheutilPath, func(host.Command) (host.Result, error) {
		return host.Result{Stdout: []byte("name: minhost.min.internal\nip_address: 127.0.0.1\n")}, nil
	})
	r.On(killallPath, func(host.Command) (host.Result, error) { return host.Result{}, nil })
	return &Step{Zone: zone, FS: hosttest.OpenDisk(t, root, nil, host.TempIn(Temp)), System: System{r}, Clock: &clock{}, Known: "minhost.min.internal",
		Answers: func(context.Context) error { return nil }}, root, r
}

// TestNeverOverADeadAnswerer: each lookup would stall for up to a minute.
func TestNeverOverADeadAnswerer(t *testing.T) {
	s, root, r := mac(t)
	s.Answers = func(context.Context) error { return errors.New("connection refused") }
	if err := s.Apply(t.Context(), &installer.Record{}); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("%v", err)
	}
	if left := hosttest.Snapshot(root + "/private/etc"); len(left) != 1 || len(r.Ran()) != 0 {
		t.Errorf("%v, ran %q", left, r.Ran())
	}
}

// TestApplyUndo: with the folder made by us, and with one that others use.
func TestApplyUndo(t *testing.T) {
	for _, others := range []bool{false, true} {
		s, root, _ := mac(t)
		if others {
			hosttest.Put(t, root, "/private/etc/resolver/test", "nameserver 127.0.0.1\n", 0o644)
		}
		before := hosttest.Snapshot(root)
		var rec installer.Record
		if err := s.Apply(t.Context(), &rec); err != nil {
			t.Fatal(err)
		}
		if o, err := s.Probe(t.Context()); err != nil || o.State != installer.Satisfied {
			t.Errorf("%+v %v", o, err)
		}
		if err := s.Undo(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		if diff := hosttest.Diff(before, hosttest.Snapshot(root)); len(diff) > 0 {
			t.Errorf("others %v: %q", others, diff)
		}
	}
	// Somebody came to use the folder that we made.
	s, root, _ := mac(t)
	var rec installer.Record
	if err := s.Apply(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	hosttest.Put(t, root, "/private/etc/resolver/test", "nameserver 127.0.0.1\n", 0o644)
	if err := s.Undo(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(root + "/private/etc/resolver/test"); err != nil || string(b) != "nameserver 127.0.0.1\n" {
		t.Errorf("%q %v", b, err)
	}
}

// TestElsewhere: lookups get elsewhere although the file is right; where that can be known the detail says
// whether the answerer was asked.
func TestElsewhere(t *testing.T) {
	for want, c := range map[string]struct{ asked, known bool }{
		"does not come to it": {false, true}, "comes to it, and the answer is not taken": {true, true}, "gets elsewhere": {true, false},
	} {
		s, _, r := mac(t)
		if err := s.Apply(t.Context(), &installer.Record{}); err != nil {
			t.Fatal(err)
		}
		var looked []string
		r.On(dscacheutilPath, func(c host.Command) (host.Result, error) {
			looked = append(looked, c.Args[len(c.Args)-1])
			return host.Result{}, nil
		})
		s.Asked = func(ctx context.Context, look func(context.Context, string)) (bool, bool) {
			look(ctx, "fresh.min.internal")
			return c.asked, c.known
		}
		o, err := s.Probe(t.Context())
		if err != nil || o.State != installer.Blocked || !strings.Contains(o.Detail, want) || !strings.Contains(o.Detail, "profile") || len(o.Detail) > 255 {
			t.Errorf("want %q: %+v %v", want, o, err)
		}
		if strings.Join(looked, " ") != "minhost.min.internal fresh.min.internal" {
			t.Errorf("looked up %q", looked)
		}
		s.Answers = func(context.Context) error { return errors.New("connection refused") }
		if o, err := s.Probe(t.Context()); err != nil || !strings.Contains(o.Detail, "the answerer does not answer") || !strings.Contains(o.Loses, "stalls") {
			t.Errorf("a dead answerer: %+v %v", o, err)
		}
	}
}

// TestTemporaryNames: every change of the folder is a rename into it, a removal, or the folder itself.
func TestTemporaryNames(t *testing.T) {
	s, root, _ := mac(t)
	gate, tally := hosttest.Count()
	s.FS = hosttest.OpenDisk(t, root, gate, host.TempIn(Temp))
	var rec installer.Record
	if err := errors.Join(s.Apply(t.Context(), &rec), s.Undo(t.Context(), rec)); err != nil {
		t.Fatal(err)
	}
	for _, c := range tally.Changes() {
		verb, path, _ := strings.Cut(c, " ")
		if strings.HasPrefix(path, Dir+"/") && path != zone.Path() {
			t.Errorf("%s: macOS reads every file of the folder as a resolver", c)
		}
		if verb == "create" && strings.HasPrefix(path, Dir+"/") {
			t.Errorf("%s: it is there before it is whole", c)
		}
	}
	if tally.N() < 8 {
		t.Errorf("%q", tally.Changes())
	}
}

// TestCut kills apply and undo before each change of the file.
func TestCut(t *testing.T) {
	scenario := func(t testing.TB) hosttest.Host {
		root := hosttest.Root(t)
		for _, d := range []string{"/private/etc", "/var/lib"} {
			if err := os.MkdirAll(root+d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return hosttest.Host{
			Engine: func(gate host.Gate) *installer.Engine {
				d := hosttest.OpenDisk(t, root, gate, host.TempIn(Temp))
				s, _, r := mac(t.(*testing.T))
				r.On(scutilPath, func(host.Command) (host.Result, error) {
					if _, err := os.Stat(root + zone.Path()); err != nil {
						return host.Result{}, nil
					}
					return host.Result{Stdout: []byte("resolver #8\n  domain   : min.internal\n  nameserver[0] : 127.0.0.1\n  port     : 15353\n")}, nil
				})
				s.FS = d
				return installer.New([]installer.Step{s}, host.NewStore(d, hosttest.JournalPath), "boot", nil)
			},
			Snapshot: func() map[string]string { return hosttest.Snapshot(root) },
		}
	}
	if changes := hosttest.CutEverywhere(t, scenario); len(changes) < 8 {
		t.Errorf("%q", changes)
	}
}
