package host_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/hosttest"
)

func sh(script string) host.Command {
	return host.Command{Path: "/bin/sh", Args: []string{"-c", script}}
}

func TestExec(t *testing.T) {
	t.Setenv("SECRET", "leaks")
	c := sh(`cat; echo "$SECRET$LC_ALL"; pwd; echo oops >&2`)
	c.Stdin = []byte("in\n")
	r, err := host.Exec{}.Run(t.Context(), c)
	if err != nil || string(r.Stdout) != "in\nC\n/\n" || string(r.Stderr) != "oops\n" {
		t.Errorf("%q %q %v", r.Stdout, r.Stderr, err)
	}
}

func TestExecFails(t *testing.T) {
	r, err := host.Exec{}.Run(t.Context(), sh("echo out; echo 'no such  device' >&2; exit 7"))
	var exit *host.ExitError
	if !errors.As(err, &exit) || exit.Code != 7 || string(r.Stdout) != "out\n" {
		t.Fatalf("%v %q", err, r.Stdout)
	}
	for _, word := range []string{"/bin/sh -c", "exit status 7", "no such device"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q lacks %q", err, word)
		}
	}
	if _, err := (host.Exec{}).Run(t.Context(), host.Command{Path: "/no/such/program"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing program: %v", err)
	}
	if _, err := (host.Exec{}).Run(t.Context(), host.Command{Path: "sh"}); err == nil || !strings.Contains(err.Error(), "absolute") {
		t.Errorf("program by PATH: %v", err)
	}
}

// TestExecEnds also when a child of the program holds the pipes open.
func TestExecEnds(t *testing.T) {
	c := sh("sleep 60 & echo started >&2; sleep 60")
	c.Timeout = 100 * time.Millisecond
	start := time.Now()
	_, err := host.Exec{}.Run(t.Context(), c)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "started") {
		t.Error(err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestExecBoundsOutput(t *testing.T) {
	c := sh("i=0; while [ $i -lt 1000 ]; do echo 0123456789; i=$((i+1)); done")
	c.Limit = 100
	r, err := host.Exec{}.Run(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "more than 100 bytes") || len(r.Stdout) != 100 {
		t.Errorf("%d bytes, %v", len(r.Stdout), err)
	}
}

// TestRunners puts the fake and the real one side by side.
func TestRunners(t *testing.T) {
	for name, make := range map[string]func(host.Gate) host.Runner{
		"real": func(g host.Gate) host.Runner { return host.Exec{Gate: g} },
		"fake": func(g host.Gate) host.Runner {
			r := hosttest.NewRunner(g)
			r.On("/bin/sh", func(c host.Command) (host.Result, error) {
				if c.Args[1] == "exit 3" {
					return host.Result{}, hosttest.Failure(c, 3, "")
				}
				return host.Result{Stdout: c.Stdin}, nil
			})
			return r
		},
	} {
		gate, tally := hosttest.Count()
		r := make(gate)
		c := sh("cat")
		c.Stdin = []byte("hello")
		if out, err := r.Run(t.Context(), c); err != nil || string(out.Stdout) != "hello" {
			t.Errorf("%s: %q %v", name, out.Stdout, err)
		}
		c.Reads = true
		if _, err := r.Run(t.Context(), c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if tally.N() != 1 || tally.Changes()[0] != "run /bin/sh -c cat" {
			t.Errorf("%s: changes %q", name, tally.Changes())
		}
		_, err := r.Run(t.Context(), sh("exit 3"))
		var exit *host.ExitError
		if !errors.As(err, &exit) || exit.Code != 3 || err.Error() != "run /bin/sh -c 'exit 3': exit status 3" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.Run(t.Context(), host.Command{Path: "/no/such"}); err == nil {
			t.Errorf("%s: unknown program runs", name)
		}
		if _, err := r.Run(t.Context(), host.Command{Path: "sh"}); err == nil {
			t.Errorf("%s: relative program runs", name)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Run(ended, sh("true")); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: ended context: %v", name, err)
		}
		cut, _ := hosttest.Cut(1)
		if _, err := make(cut).Run(t.Context(), sh("cat")); !errors.Is(err, hosttest.ErrCut) {
			t.Errorf("%s: cut: %v", name, err)
		}
	}
}

func TestFakeRunnerWantsOrder(t *testing.T) {
	r := hosttest.NewRunner(nil)
	r.On("/bin/systemctl", func(host.Command) (host.Result, error) { return host.Result{}, nil })
	r.Order("/bin/systemctl daemon-reload", "/bin/systemctl enable")
	enable := host.Command{Path: "/bin/systemctl", Args: []string{"enable", "x"}}
	if _, err := r.Run(t.Context(), enable); err == nil {
		t.Error("enable before daemon-reload is accepted")
	}
	if _, err := r.Run(t.Context(), host.Command{Path: "/bin/systemctl", Args: []string{"daemon-reload"}}); err != nil {
		t.Error(err)
	}
	if _, err := r.Run(t.Context(), enable); err != nil || len(r.Ran()) != 3 {
		t.Errorf("%v, %q", err, r.Ran())
	}
}
