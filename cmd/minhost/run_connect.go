//go:build unix

package main

import (
	"context"
	"errors"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
)

// adoptTime is how long run tries to find the helper again. A box whose owner is lost in a
// restart of the helper is kept for 10 s (DESIGN.md section 8).
const adoptTime = 8 * time.Second

// Pauses before a connection is tried again.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 200 * time.Millisecond
)

// crowded says that the account has as many connections as the helper takes that hold no lease. Where many boxes
// start at once, or look for a helper that was restarted, each has one a moment later.
func crowded(err error) bool { return errors.As(err, new(*api.TooManyConnections)) }

// lost says that there was no answer, as long as a helper is restarted.
func lost(err error) bool { return errors.As(err, new(*client.Failure)) }

// connect dials and makes a call, and the connection the session's; again as long as what fails will pass, and at
// most for a time.
func (s *session) connect(ctx context.Context, limit time.Duration, passes func(error) bool, call func(context.Context, *client.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		c, err := client.Dial(ctx, s.env.Socket)
		if err == nil {
			if err = call(ctx, c); err == nil {
				if s.client != nil {
					s.client.Close()
				}
				s.client = c
				return nil
			}
			c.Close()
		}
		if !passes(err) {
			return err
		}
		s.env.Log.Debug("connect again", "cause", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// reconnect is connect to a helper that went away. What another one answers ends the trying, but that it is crowded.
func (s *session) reconnect(ctx context.Context, call func(context.Context, *client.Client) error) error {
	return s.connect(ctx, adoptTime, func(err error) bool { return lost(err) || crowded(err) }, call)
}

// adopt makes a new connection the owner of the box.
func (s *session) adopt(ctx context.Context) error {
	return s.reconnect(ctx, func(ctx context.Context, c *client.Client) error {
		return c.Adopt(ctx, api.AdoptIn{Lease: s.plan.Lease, Secret: s.plan.Secret})
	})
}
