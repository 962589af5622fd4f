package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Command is one run of a program. There is no shell: Args are the arguments as the program gets
// them, and scripts go in by Stdin.
type Command struct {
	Path  string // absolute: root must not find another program by PATH
	Args  []string
	Stdin []byte
	// Env is the whole environment; nil means DefaultEnv.
	Env []string
	// Timeout ends the run; 0 means 30 s. An earlier deadline of the context wins.
	Timeout time.Duration
	// Limit bounds stdout and stderr, each; 0 means 1 MiB. More is an error.
	Limit int
	// Reads is set when the program only reads: the gate is not asked then.
	Reads bool
}

// DefaultEnv is what programs get: no word of the caller's, and English messages.
var DefaultEnv = [...]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "LANG=C"}

func (c Command) String() string {
	words := []string{quote(c.Path)}
	for _, a := range c.Args {
		words = append(words, quote(a))
	}
	return strings.Join(words, " ")
}

// Result is what a program printed, also when it failed.
type Result struct {
	Stdout, Stderr []byte
}

// Runner runs programs. The error is an *ExitError when the program ran and failed.
type Runner interface {
	Run(context.Context, Command) (Result, error)
}

// ExitError is a program that ended with a status other than 0, or by a signal (Code -1).
type ExitError struct {
	Command string
	Code    int
	Status  string // "exit status 2", "signal: killed"
	Stderr  string
}

func (e *ExitError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("run %s: %s", e.Command, e.Status)
	}
	return fmt.Sprintf("run %s: %s: %s", e.Command, e.Status, e.Stderr)
}

// Exec is the Runner of the host.
type Exec struct{ Gate Gate }

const (
	defaultTimeout = 30 * time.Second
	defaultLimit   = 1 << 20
	// pipeGrace is how long Run waits for pipes that a killed program's children hold open.
	pipeGrace = 2 * time.Second
)

// Run runs one program to its end.
func (e Exec) Run(ctx context.Context, c Command) (Result, error) {
	if !filepath.IsAbs(c.Path) {
		return Result{}, fmt.Errorf("run %q: not an absolute path", c.Path)
	}
	if !c.Reads {
		if err := e.Gate.Pass("run " + c.String()); err != nil {
			return Result{}, err
		}
	}
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	limit := c.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	stdout, stderr := &bounded{limit: limit}, &bounded{limit: limit}
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(c.Stdin), stdout, stderr
	cmd.Dir, cmd.WaitDelay = "/", pipeGrace
	cmd.Env = c.Env
	if cmd.Env == nil {
		cmd.Env = DefaultEnv[:]
	}
	err := cmd.Run()
	result := Result{stdout.buf.Bytes(), stderr.buf.Bytes()}
	return result, runError(ctx, c, err, stdout, stderr)
}

func runError(ctx context.Context, c Command, err error, stdout, stderr *bounded) error {
	var exit *exec.ExitError
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("run %s: %w: %s", c, ctx.Err(), tail(stderr.buf.Bytes()))
	case errors.As(err, &exit):
		return &ExitError{Command: c.String(), Code: exit.ExitCode(), Status: exit.String(), Stderr: tail(stderr.buf.Bytes())}
	case err != nil:
		return fmt.Errorf("run %s: %w", c, cause(err))
	case stdout.over || stderr.over:
		return fmt.Errorf("run %s: it printed more than %d bytes", c, stdout.limit)
	}
	return nil
}

// bounded keeps the first limit bytes and swallows the rest, so that the program does not block.
type bounded struct {
	buf   bytes.Buffer
	limit int
	over  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.limit - b.buf.Len()
	if len(p) > room {
		b.over = true
		b.buf.Write(p[:room])
		return len(p), nil
	}
	return b.buf.Write(p)
}

// tail is the end of what a program complained about, on one line.
func tail(b []byte) string {
	const most = 1000
	s := strings.Join(strings.Fields(string(b)), " ")
	if len(s) > most {
		s = "..." + s[len(s)-most:]
	}
	return s
}
