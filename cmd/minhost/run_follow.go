//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/installer/client/hold"
)

// passed are the signals that go to the program. SIGPIPE is caught beside them, so that a closed
// standard error cannot end run before the box is ended.
var passed = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGTSTP,
}

// signalSource catches signals. What this program was started to ignore (nohup) stays ignored,
// for the program too.
type signalSource struct {
	c chan os.Signal
}

func newSignalSource() *signalSource {
	s := &signalSource{c: make(chan os.Signal, 64)}
	for _, sig := range append([]os.Signal{syscall.SIGPIPE}, passed...) {
		if !signal.Ignored(sig) {
			signal.Notify(s.c, sig)
		}
	}
	return s
}

func (s *signalSource) stop() { signal.Stop(s.c) }

func endsPrograms(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		return true
	}
	return false
}

// follow waits for the end of the program. Meanwhile it passes signals on, stops with it and goes
// on with it, and stays with a helper that is restarted.
//
// ctx is the program's and does not end before it.
func (s *session) follow(ctx context.Context) (status int, err error) {
	lost, kept := s.client.Lost(), make(chan error, 1)
	for {
		select {
		case sig := <-s.signals.c:
			s.forward(sig.(syscall.Signal))
		case change := <-s.child.Changes():
			if change.Stopped() && s.term != nil {
				s.stopped(change.StopSignal())
			}
		case <-lost:
			if s.way.join != "" { // who made the box keeps it
				lost = nil
				continue
			}
			lost = nil
			go func() { kept <- s.adopt(ctx) }()
		case err := <-kept:
			if err != nil {
				_ = s.child.SignalGroup(syscall.SIGKILL)
				s.alone = errors.As(err, new(*client.Failure))
				return 0, s.orphaned(err)
			}
			lost = s.client.Lost()
		case <-s.child.Done():
			if lost == nil && s.way.join == "" { // adopt is under way, and owns s.client until then
				<-kept
			}
			return s.ended()
		}
	}
}

// ended gives the status of the program. A box whose connection broke is killed by the helper:
// that is no status of the program's.
func (s *session) ended() (int, error) {
	status := s.child.Status()
	if status.Signaled() && status.Signal() == syscall.SIGKILL {
		select {
		case <-s.client.Lost():
			return 0, s.orphaned(errors.New("the connection to the helper broke"))
		case <-time.After(50 * time.Millisecond): // news of the connection may come behind the kill
		}
	}
	return hold.ExitStatus(status), nil
}

// forward passes a signal to the program. Stop and continue go to its whole process group, as a
// shell sends them; a program in the foreground gets the others from the terminal itself.
func (s *session) forward(sig syscall.Signal) {
	switch sig {
	case syscall.SIGPIPE:
	case syscall.SIGWINCH:
		s.screen.resize()
		_ = s.child.Signal(sig)
	case syscall.SIGCONT, syscall.SIGTSTP:
		_ = s.child.SignalGroup(sig)
	default:
		_ = s.child.Signal(sig) // the only error is that it has ended
	}
}

// stopped answers a stop of the program. If it wanted the terminal, and the shell has meanwhile
// put this program into the foreground (bash tells nobody: it sends no SIGCONT to a job that
// runs), it gets it. Else this program's process group stops, so that the shell of the terminal
// sees its job stopped; when it goes on, so does the program.
//
// The stop is SIGTTIN: the kernel leaves it out for a group that nobody could wake (an orphaned
// one), unlike SIGSTOP, and the Go runtime has no hand in it, unlike in SIGTSTP, whose default
// Reset does not bring back (go 1.26, sigdisable).
func (s *session) stopped(by syscall.Signal) {
	wants := s.screen == nil && (by == syscall.SIGTTIN || by == syscall.SIGTTOU)
	if wants && s.term.Give(s.child) {
		_ = s.child.SignalGroup(syscall.SIGCONT)
		return
	}
	s.term.Take(s.child)
	s.screen.leave()
	_ = syscall.Kill(0, syscall.SIGTTIN)
	s.awaitContinue()
	s.screen.enter()
	s.screen.resize()
	if s.screen == nil && s.way.strict == strictNever {
		s.term.Give(s.child)
	}
	_ = s.child.SignalGroup(syscall.SIGCONT)
}

// interrupt ends this program, and what else is in its process group, by the SIGINT that ended
// the program: it came from the terminal, but only to the program's group. A script that runs
// minhost would go on otherwise; bash ends only when what it runs is ended by the signal itself.
// The shell's $? is 130 in both cases.
func (s *session) interrupt() {
	signal.Reset(syscall.SIGINT)
	_ = syscall.Kill(0, syscall.SIGINT)
	time.Sleep(time.Second) // a signal to oneself is delivered at once
}

// awaitContinue returns when this program goes on. A stop takes effect a moment after kill
// returned, and never in an orphaned group: then nothing comes, and a moment is all it waits.
func (s *session) awaitContinue() {
	moment := time.After(200 * time.Millisecond)
	for {
		select {
		case sig := <-s.signals.c:
			if sig == syscall.SIGCONT {
				return
			}
			s.forward(sig.(syscall.Signal))
		case <-moment:
			return
		}
	}
}
