//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
)

// adoptTime is how long run tries to find the helper again. A box whose owner is lost in a
// restart of the helper is kept for 10 s (DESIGN.md section 8).
const adoptTime = 8 * time.Second

// reconnect dials until a helper is there or adoptTime is over, and calls it once. An answer of
// the helper ends the trying, whatever it says.
func (s *session) reconnect(ctx context.Context, call func(context.Context, *client.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, adoptTime)
	defer cancel()
	for {
		c, err := client.Dial(ctx, s.env.Socket)
		if err == nil {
			if err = call(ctx, c); err == nil {
				s.client.Close()
				s.client = c
				return nil
			}
			c.Close()
		}
		if failure := new(client.Failure); !errors.As(err, &failure) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// adopt makes a new connection the owner of the box.
func (s *session) adopt(ctx context.Context) error {
	return s.reconnect(ctx, func(ctx context.Context, c *client.Client) error {
		return c.Adopt(ctx, api.AdoptIn{Lease: s.plan.Lease, Secret: s.plan.Secret})
	})
}

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
	for _, f := range s.given {
		f.Close()
	}
	if s.client == nil {
		return
	}
	if s.way.join != "" { // the box is another's, who ends it
		s.tellHeard()
		s.client.Close()
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
