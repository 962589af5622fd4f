//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
)

// orphaned words the end of a box whose helper went away.
func (s *session) orphaned(cause error) error {
	return hinted{fmt.Errorf("run: the helper was lost, and %s was ended: %w", s.box(), cause), "minhost status"}
}

// end gives everything back: nothing of the box is left when it returns, or it says so. Of a
// child that was not released nothing ran.
func (s *session) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if s.child != nil {
		s.child.Kill()
		defer s.child.Close()
	}
	s.networkSwitch.stop()
	for _, f := range s.given {
		f.Close()
	}
	if s.way.join != "" { // the box is another's, who ends it
		s.tellHeard()
	}
	if s.client == nil || s.way.join != "" {
		return
	}
	defer s.note.forget()
	// A call that was cancelled has closed the connection, and with it the lease is gone.
	defer func() { s.client.Close() }()
	switch {
	case s.alone: // a helper that starts again finds the leaf without an owner and ends it
	case s.attached:
		s.teardown(ctx)
	case s.planned:
		_ = s.client.Abandon(ctx, api.AbandonIn{Lease: s.plan.Lease})
	}
}

func (s *session) teardown(ctx context.Context) {
	in := api.TeardownIn{Lease: s.plan.Lease, Secret: s.plan.Secret, Kill: true}
	out, err := s.client.Teardown(ctx, in)
	if failure := new(client.Failure); errors.As(err, &failure) {
		err = s.reconnect(ctx, func(ctx context.Context, c *client.Client) (err error) {
			out, err = c.Teardown(ctx, in)
			return err
		})
	}
	if gone := new(api.NoSuchLease); err != nil && !errors.As(err, &gone) {
		report(s.env.Stderr, fmt.Errorf("%s may be left over: %w", s.box(), err))
	}
	for _, line := range refusalLines(out.Refusals, "the command") {
		s.tell("%s", line)
	}
}
