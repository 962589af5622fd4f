//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client/hold"
)

// release lets the child become the program: strict where that is wanted, and cooperative where it
// cannot be had and need not.
func (s *session) release(ctx context.Context) error {
	t, err := s.target()
	if err != nil {
		return err
	}
	err = s.releaseAs(ctx, t)
	setup := new(hold.SetupError)
	if errors.As(err, &setup) && s.way.strict == strictWanted {
		cause, next := notStrict(setup)
		s.tell("%s is cooperative, not strict: %s (%s)", s.box(), cause, next)
		s.way.strict = strictNever
		if err = s.declare(ctx); err == nil {
			t, err = s.target()
		}
		if err == nil {
			err = s.releaseAs(ctx, t)
		}
	}
	var refused *hold.ExecError
	switch {
	case err == nil:
		s.screen.start()
		return nil
	case errors.As(err, &setup):
		cause, next := notStrict(setup)
		return hinted{fmt.Errorf("run: %s cannot be strict: %s", s.box(), cause), next}
	case errors.As(err, &refused) && refused.Err == syscall.ENOENT:
		return exitError{statusNotFound, fmt.Errorf("run %s: %w", api.Text(s.args[0]), refused.Err)}
	case errors.As(err, &refused):
		return exitError{statusNotExecutable, fmt.Errorf("run %s: %w", api.Text(s.args[0]), refused.Err)}
	}
	return err
}

// declare takes back what was said of the box, before anything runs in it.
func (s *session) declare(ctx context.Context) error {
	_, err := bounded(ctx, planTime, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.client.Update(ctx, api.UpdateIn{Lease: s.plan.Lease, Secret: s.plan.Secret, Boundary: api.BoundaryCooperative})
	})
	return err
}

func (s *session) releaseAs(ctx context.Context, t hold.Target) error {
	_, err := bounded(ctx, releaseTime, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.child.Release(ctx, t)
	})
	return err
}

// target is what the child executes, and within what.
func (s *session) target() (hold.Target, error) {
	t := hold.Target{Path: s.path, Args: s.args, Env: childEnvironment(os.Environ(), s.plan)}
	if s.networkSwitch == nil {
		t.Files = s.given
	}
	bare := s.way.strict == strictNever
	if bare && s.screen == nil {
		return t, nil
	}
	var err error
	t.Within, err = within(s.plan.Net, s.note.hide(), s.screen != nil, bare)
	return t, err
}

// notStrict says why there are no namespaces, and what to do.
func notStrict(e *hold.SetupError) (cause, next string) {
	const without = "minhost run --no-strict"
	if cause, next := advice(); cause != "" {
		return cause, next + "; or " + without
	}
	return e.Cause, without
}

// listen asks for the sockets that the program is given.
func (s *session) listen(ctx context.Context) error {
	for _, in := range s.way.listen {
		in.Lease, in.Secret = s.plan.Lease, s.plan.Secret
		socket, err := bounded(ctx, attachTime, func(ctx context.Context) (*os.File, error) {
			_, f, err := s.client.Listen(ctx, in)
			return f, err
		})
		if err != nil {
			return err
		}
		s.given = append(s.given, socket)
	}
	return nil
}

// stateFolder is where minhost keeps what outlives a call of run, of this account alone: below it are
// logs of detached boxes.
func stateFolder(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "minhost"), nil
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local/state/minhost"), nil
	}
	return "", hinted{errors.New("run: no folder for what a box leaves: neither XDG_STATE_HOME nor HOME is set"), "export HOME"}
}

// openLog makes the file of what a detached program prints.
func openLog(env *environment, plan api.PlanOut) (*os.File, error) {
	dir, err := stateFolder(env.Getenv)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	return openOwn(filepath.Join(dir, boxFile(plan)+".log"))
}

// openOwn makes a file, or empties the one that is there. With another account's HOME (sudo keeps it where it is told
// to, and on macOS) the folder is that account's: root follows no link there and empties nobody else's file.
func openOwn(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	fi, err := f.Stat()
	if err == nil {
		st, ok := fi.Sys().(*syscall.Stat_t)
		if !fi.Mode().IsRegular() || !ok || int(st.Uid) != os.Geteuid() {
			err = hinted{fmt.Errorf("run: %s is not a file of this account", path), "export XDG_STATE_HOME"}
		}
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// boxFile names files of a box: names of boxes and leases have no slash.
func boxFile(plan api.PlanOut) string {
	if plan.Name != "" {
		return strings.ReplaceAll(plan.Name, "/", "_")
	}
	return plan.Lease
}

// leave prints what a detached box is called. From here on it is nobody's: the helper takes it down
// when its last process has ended.
func (s *session) leave(ctx context.Context, pending []syscall.Signal) error {
	for _, sig := range pending {
		if endsPrograms(sig) { // it came before the program ran: it was meant for all of it
			s.end(ctx)
			return exitError{code: 128 + int(sig)}
		}
	}
	s.detached = true
	s.child.Close()
	s.client.Close()
	fmt.Fprintln(s.env.Stdout, strings.TrimPrefix(s.box(), "box "))
	return nil
}
