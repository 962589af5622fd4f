package label

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/linux/systemd"
)

const program, unit, absent = "/usr/local/lib/minhost/minhost", "/etc/systemd/system/minhost-tree.service", "/etc/systemd/network/10-minhost.network"

// policy models restorecon: what it would change, and what it changed.
type policy struct {
	wrong map[string]bool
	calls [][]string
}

func (p *policy) Run(_ context.Context, c host.Command) (host.Result, error) {
	p.calls = append(p.calls, c.Args)
	i := slices.Index(c.Args, "--")
	if c.Path != "/sbin/restorecon" || i < 0 || c.Reads != slices.Contains(c.Args, "-n") {
		return host.Result{}, errors.New("restorecon: " + c.String())
	}
	var out []string
	for _, path := range c.Args[i+1:] {
		if !p.wrong[path] {
			continue
		}
		out = append(out, "Would relabel "+path+" from user_tmp_t to bin_t")
		if !c.Reads {
			delete(p.wrong, path)
		}
	}
	return host.Result{Stdout: []byte(strings.Join(out, "\n"))}, nil
}

func step(p *policy, files ...string) Step {
	return Step{Env: systemd.Env{Exists: func(f string) bool { return slices.Contains(files, f) }}, Run: p, Paths: []string{program, unit, absent}}
}

func probe(t *testing.T, s Step, want installer.State, detail string) {
	t.Helper()
	obs, err := s.Probe(t.Context())
	if err != nil || obs.State != want || !strings.Contains(obs.Detail, detail) || (want == installer.Satisfied) != (obs.Loses == "") {
		t.Errorf("%+v, %v; want %s, %q", obs, err, want, detail)
	}
}

func TestLabels(t *testing.T) {
	p := &policy{wrong: map[string]bool{program: true}}
	s := step(p, selinuxfs, "/sbin/restorecon", program, unit)
	probe(t, s, installer.Drifted, "user_tmp_t")
	if err := s.Apply(t.Context(), &installer.Record{}); err != nil {
		t.Fatal(err)
	}
	probe(t, s, installer.Satisfied, "those of the policy")
	if last := p.calls[len(p.calls)-1]; slices.Contains(last, absent) || !slices.Contains(last, unit) {
		t.Errorf("asked about %v", last)
	}
}

func TestWithoutSELinux(t *testing.T) {
	p := &policy{}
	probe(t, step(p, "/sbin/restorecon", program), installer.Satisfied, "no SELinux")
	probe(t, step(p, selinuxfs, program), installer.Blocked, "policycoreutils")
	probe(t, step(p, selinuxfs, "/sbin/restorecon"), installer.Satisfied, "those of the policy") // nothing is there yet
	if len(p.calls) != 0 {
		t.Errorf("calls %v", p.calls)
	}
}
