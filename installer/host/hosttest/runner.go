package hosttest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gominimal/minhost/installer/host"
)

// Program answers for a program of the host: it changes whatever model the test keeps.
type Program func(c host.Command) (host.Result, error)

// Runner is a host.Runner that runs nothing. It objects to programs nobody described, and to a
// command that comes before the one it depends on. Safe for use from several goroutines.
type Runner struct {
	Gate host.Gate

	mu       sync.Mutex
	programs map[string]Program
	before   [][2]string
	ran      []string
}

// NewRunner returns a runner that knows no program.
func NewRunner(gate host.Gate) *Runner {
	return &Runner{Gate: gate, programs: map[string]Program{}}
}

// On describes the program at an absolute path.
func (r *Runner) On(path string, p Program) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.programs[path] = p
}

// Order makes a command that starts with later fail unless one that starts with first came before
// ("/usr/bin/systemctl daemon-reload", "/usr/bin/systemctl enable").
func (r *Runner) Order(first, later string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before = append(r.before, [2]string{first, later})
}

// Run asks the gate as host.Exec does, checks the order and calls the program.
func (r *Runner) Run(ctx context.Context, c host.Command) (host.Result, error) {
	if err := ctx.Err(); err != nil {
		return host.Result{}, err
	}
	line := c.String()
	if !c.Reads {
		if err := r.Gate.Pass("run " + line); err != nil {
			return host.Result{}, err
		}
	}
	r.mu.Lock()
	program, known := r.programs[c.Path]
	missing := r.missing(line)
	r.ran = append(r.ran, line)
	r.mu.Unlock()
	switch {
	case missing != "":
		return host.Result{}, fmt.Errorf("run %s: %q must come first", line, missing)
	case !known:
		return host.Result{}, fmt.Errorf("run %s: no such program on this host", line)
	}
	return program(c)
}

func (r *Runner) missing(line string) string {
	for _, pair := range r.before {
		came := func(l string) bool { return strings.HasPrefix(l, pair[0]) }
		if strings.HasPrefix(line, pair[1]) && !slices.ContainsFunc(r.ran, came) {
			return pair[0]
		}
	}
	return ""
}

// Ran lists the commands in the order they came.
func (r *Runner) Ran() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ran)
}

// Failure is what a Program returns for an exit status other than 0.
func Failure(c host.Command, code int, stderr string) error {
	return &host.ExitError{Command: c.String(), Code: code, Status: fmt.Sprintf("exit status %d", code), Stderr: stderr}
}
