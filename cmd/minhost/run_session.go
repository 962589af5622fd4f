//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/installer/client/hold"
)

// Bounds of what run waits for. Attach waits for the kernel to move a process, which takes
// milliseconds, and for the table.
const (
	dialTime    = 5 * time.Second
	planTime    = 20 * time.Second
	attachTime  = 30 * time.Second
	releaseTime = 30 * time.Second
	endTime     = 20 * time.Second
)

// session is one run: a lease, a child, and the way from one to the other. Its fields are set in
// order; what is not set was not reached.
type session struct {
	env  *environment
	path string
	args []string
	way  way

	signals *signalSource
	term    *hold.Terminal
	screen  *screen

	client   *client.Client
	plan     api.PlanOut // of a box that was joined: what is known of it
	planned  bool
	child    *hold.Child
	attached bool
	alone    bool       // no helper can be found any more
	detached bool       // the box is nobody's now
	given    []*os.File // sockets for the program, or for the switch
	tap      *os.File   // for the switch
	// networkSwitch has the tap of a box with a network of its own; else nil.
	networkSwitch *networkSwitch
	heard         *hearing
	note          *note // what other calls of run and stop need to know, in a file
}

func newSession(env *environment, path string, args []string, w way) *session {
	return &session{env: env, path: path, args: args, way: w}
}

// run plans, starts, follows and ends one box; status is the program's.
func (s *session) run(ctx context.Context, in api.PlanIn) (status int, err error) {
	s.signals = newSignalSource()
	defer s.signals.stop()
	if !s.way.detach {
		s.term = hold.OpenTerminal()
		defer s.term.Close()
	}

	pending, err := s.prepare(ctx, in)
	if err == nil && s.way.detach {
		return statusOK, s.leave(ctx, pending)
	}
	if err == nil {
		for _, sig := range pending {
			s.forward(sig)
		}
		status, err = s.follow(ctx)
	}
	inFront := s.screen.finish()
	inFront = s.term.Take(s.child) || inFront
	s.end(ctx)
	if inFront && s.child.Status().Signaled() && s.child.Status().Signal() == syscall.SIGINT {
		s.interrupt()
	}
	return status, err
}

// prepare does everything until the program runs. A signal that ends programs ends it; other
// signals are for the program and are given back.
func (s *session) prepare(ctx context.Context, in api.PlanIn) (pending []syscall.Signal, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready := make(chan error, 1)
	go func() { ready <- s.start(ctx, in) }()
	var caught syscall.Signal
	for {
		select {
		case sig := <-s.signals.c:
			if sig := sig.(syscall.Signal); endsPrograms(sig) {
				caught = sig
				cancel()
			} else {
				pending = append(pending, sig)
			}
		case err := <-ready:
			switch {
			case caught != 0 && err == nil: // it runs: the signal is the program's
				return append(pending, caught), nil
			case caught != 0:
				return nil, exitError{code: 128 + int(caught)}
			}
			return pending, err
		}
	}
}

// start is prepare's straight way.
func (s *session) start(ctx context.Context, in api.PlanIn) (err error) {
	if s.way.join != "" {
		return s.enter(ctx)
	}
	if err := s.connect(ctx, planTime, crowded, func(ctx context.Context, c *client.Client) (err error) {
		s.plan, err = c.Plan(ctx, in)
		return err
	}); err != nil {
		return err
	}
	s.planned = true
	if err := s.checkPlan(in); err != nil {
		return err
	}
	if err := s.hold(ctx, hold.Options{Network: s.plan.Net.Isolate}); err != nil {
		return err
	}
	if err := s.attach(ctx); err != nil {
		return err
	}
	if err := s.remember(in); err != nil {
		return err
	}
	return s.letGo(ctx)
}

// hold starts the child with its standard files.
func (s *session) hold(ctx context.Context, o hold.Options) (err error) {
	in, out, errOut := fileOf(s.env.Stdin), fileOf(s.env.Stdout), fileOf(s.env.Stderr)
	switch {
	case s.way.detach:
		log, err := openLog(s.env, s.plan)
		if err != nil {
			return err
		}
		defer log.Close()
		in, out, errOut, o.Session = nil, log, log, true
	case s.way.strict != strictNever || s.way.terminal != nil:
		if s.screen, err = openScreen(s.way.terminal, in, out); err != nil {
			return fmt.Errorf("run: a terminal of its own: %w", err)
		}
		in, out, errOut = s.screen.instead(in), s.screen.instead(out), s.screen.instead(errOut)
	}
	o.Stdin, o.Stdout, o.Stderr = in, out, errOut
	if s.child, err = hold.Start(ctx, o); err != nil && o.Network {
		if cause, next := advice(); cause != "" {
			return hinted{fmt.Errorf("run: no network namespace for %s: %s", s.box(), cause), next}
		}
	}
	return err
}

// letGo is the last step: sockets, terminal, program.
func (s *session) letGo(ctx context.Context) error {
	if err := s.listen(ctx); err != nil {
		return err
	}
	if s.way.switchProgram != "" {
		if err := s.startSwitch(); err != nil {
			return err
		}
	}
	if s.screen == nil && s.way.strict == strictNever && !s.way.detach {
		s.term.Give(s.child)
	}
	return s.release(ctx)
}

// checkPlan refuses what this runner cannot set up, and says what the host cannot do.
func (s *session) checkPlan(in api.PlanIn) error {
	if s.plan.Net.Isolate && in.Mode == api.ModeHost {
		return hinted{fmt.Errorf("run: the helper wants a network namespace for %s, which has mode host", s.box()), "minhost status"}
	}
	confined := in.Policy.Egress != api.EgressOpen || len(in.Policy.DenySubnets) > 0
	if confined && s.plan.Enforcement != api.EnforcementPerBox {
		s.tell("%s is not confined on this host: %s", s.box(), shown(s.plan.EnforcementCause))
	}
	if s.plan.LocalhostCause != "" {
		s.tell("%s shares the localhost of this host, and has MINHOST_ADDRESS for its servers: %s", s.box(), shown(s.plan.LocalhostCause))
	}
	return nil
}

func (s *session) attach(ctx context.Context) error {
	in := api.AttachIn{Lease: s.plan.Lease}
	if s.child.Pidfd() == nil {
		in.PID = s.child.PID() // not reaped before it ends, and not reaped unnoticed: its own
	}
	var err error
	s.tap, err = bounded(ctx, attachTime, func(ctx context.Context) (*os.File, error) {
		return s.client.AttachTap(ctx, in, s.child.Pidfd())
	})
	s.attached = err == nil
	return err
}

// box names the box for people.
func (s *session) box() string {
	if s.plan.Name != "" {
		return "box " + api.Text(s.plan.Name)
	}
	return "box " + api.Text(s.plan.Lease)
}

// tell says one line beside the program's own.
func (s *session) tell(format string, args ...any) {
	fmt.Fprintf(s.env.Stderr, "minhost: "+format+"\n", args...)
}

// fileOf gives the descriptor that a child can have; what is none (in tests) is /dev/null.
func fileOf(v any) *os.File {
	f, _ := v.(*os.File)
	return f
}

func bounded[T any](ctx context.Context, limit time.Duration, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return call(ctx)
}
