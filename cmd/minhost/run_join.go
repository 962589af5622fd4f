//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/installer/client/hold"
)

// enter is start for a box that another run has made.
func (s *session) enter(ctx context.Context) error {
	err := s.connect(ctx, planTime, crowded, func(ctx context.Context, c *client.Client) (err error) {
		s.note, err = findBox(ctx, s.env, c, s.way.join)
		return err
	})
	if err != nil {
		return err
	}
	n := s.note
	s.plan = api.PlanOut{Lease: n.Lease, Secret: n.Secret, Name: n.Name, Address: n.Address, HostAddress: n.Host, Net: n.Net}
	o := hold.Options{}
	if n.Net.Isolate {
		o.NetworkOf = n.PID
	}
	if err := s.hold(ctx, o); err != nil {
		return err
	}
	s.hear(ctx)
	if err := s.connect(ctx, attachTime, crowded, s.join); err != nil {
		return err
	}
	if err := s.letGo(ctx); err != nil {
		return err
	}
	s.client.Close() // one connection for each program: an account may have 32
	s.client = s.heard.client
	return nil
}

func (s *session) join(ctx context.Context, c *client.Client) error {
	in := api.JoinIn{Lease: s.plan.Lease, Secret: s.plan.Secret, Kind: s.way.kind, Name: s.args[0], Boundary: s.way.boundary()}
	if s.child.Pidfd() == nil {
		in.PID = s.child.PID()
	}
	_, netns, err := c.Join(ctx, in, s.child.Pidfd())
	if err != nil {
		return boxGone(err)
	}
	if netns == nil {
		return nil
	}
	defer netns.Close()
	return sameNetwork(netns, s.child.PID())
}

// boxGone adds what to do to the errors of a box that ended meanwhile.
func boxGone(err error) error {
	if e := new(api.NoSuchLease); errors.As(err, &e) {
		return hinted{err, "minhost ls; minhost run --name NAME starts a box"}
	}
	return err
}

// sameNetwork checks that the child is in the network namespace of the box: the number of the process
// whose namespace it entered could have been another's by then.
func sameNetwork(netns *os.File, pid int) error {
	want, err := netns.Stat()
	if err != nil {
		return err
	}
	have, err := os.Stat(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return err
	}
	if !os.SameFile(want, have) {
		return hinted{errors.New("run: the network namespace of the box is not where it was"), "minhost ls"}
	}
	return nil
}

// findBox finds a box of this account by its name or lease id, and the note that run left of it.
func findBox(ctx context.Context, env *environment, c *client.Client, box string) (*note, error) {
	old := notes(env.Getenv)
	out, err := bounded(ctx, dialTime, c.List)
	if err != nil {
		return nil, err
	}
	sweepNotes(old, out.Leases)
	for _, l := range out.Leases {
		if l.Lease != "" && (l.Lease == box || l.Name == box) {
			return readNote(env.Getenv, l.Lease)
		}
	}
	return nil, hinted{fmt.Errorf("there is no box %s of this account", api.Text(box)), "minhost ls"}
}
