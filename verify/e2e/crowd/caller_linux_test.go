package crowd

import (
	"context"
	"errors"
	"os/exec"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
)

// caller is one connection as root, who has no limit of names.
type caller struct {
	c     *client.Client
	child *exec.Cmd
	took  []time.Duration
}

// timed notes how long a call took.
func (c *caller) timed(f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), slowest)
	defer cancel()
	start := time.Now()
	err := f(ctx)
	c.took = append(c.took, time.Since(start))
	return err
}

// attach starts a process and makes a box of it.
func (c *caller) attach(name string) (plan api.PlanOut, err error) {
	cmd := exec.Command("/bin/sleep", "900")
	if err := cmd.Start(); err != nil {
		return plan, err
	}
	c.child = cmd
	err = c.timed(func(ctx context.Context) (err error) {
		plan, err = c.c.Plan(ctx, api.PlanIn{Name: name, Mode: api.ModeHost, Policy: api.Policy{Egress: api.EgressDeny}})
		return err
	})
	if err == nil {
		err = c.timed(func(ctx context.Context) error {
			return c.c.Attach(ctx, api.AttachIn{Lease: plan.Lease, PID: cmd.Process.Pid}, nil)
		})
	}
	return plan, err
}

func (c *caller) end(plan api.PlanOut) error {
	err := c.timed(func(ctx context.Context) error {
		_, err := c.c.Teardown(ctx, api.TeardownIn{Lease: plan.Lease, Secret: plan.Secret, Kill: true})
		return err
	})
	c.child.Process.Kill()
	c.child.Wait()
	return err
}

// life is one box from its plan to its end, with what others ask meanwhile.
func (c *caller) life(name string) error {
	plan, err := c.attach(name)
	if err != nil {
		return err
	}
	policy := api.Policy{Egress: api.EgressRules, Rules: []api.Rule{{To: "192.0.2.0/24", Ports: "443", Protocol: api.ProtocolTCP}}}
	for _, call := range []func(ctx context.Context) error{
		func(ctx context.Context) error {
			return c.c.Update(ctx, api.UpdateIn{Lease: plan.Lease, Secret: plan.Secret, Policy: new(policy)})
		},
		func(ctx context.Context) error { _, err := c.c.List(ctx); return err },
		func(ctx context.Context) error {
			_, s, err := c.c.Listen(ctx, api.ListenIn{Lease: plan.Lease, Secret: plan.Secret, Protocol: api.ProtocolTCP})
			if s != nil {
				s.Close()
			}
			return err
		},
		func(ctx context.Context) error { _, err := c.c.Status(ctx); return err },
	} {
		if err := c.timed(call); err != nil {
			return errors.Join(err, c.end(plan))
		}
	}
	return c.end(plan)
}
