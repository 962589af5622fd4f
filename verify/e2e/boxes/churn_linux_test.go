package boxes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"syscall"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
)

// cycle is one life of a lease, whole or broken off somewhere. It returns an error only for what
// must not fail.
type cycle func(ctx context.Context, l *life) error

// life is what a cycle works with.
type life struct {
	h    *host
	c    *client.Client
	plan api.PlanOut
	name string // "" for a box without
	ps   []*exec.Cmd
}

// cycles are all the ways to live and to break off.
var cycles = map[string]cycle{
	"teardown": func(ctx context.Context, l *life) error {
		if err := l.attach(ctx, false); err != nil {
			return err
		}
		return l.teardown(ctx)
	},
	"update, join, teardown": func(ctx context.Context, l *life) error {
		if err := l.attach(ctx, true); err != nil {
			return err
		}
		if err := l.c.Update(ctx, api.UpdateIn{Lease: l.plan.Lease, Secret: l.plan.Secret, Policy: new(rules("192.0.2.0/24 443 tcp"))}); err != nil {
			return err
		}
		pid, err := l.start()
		if err == nil {
			_, _, err = l.c.Join(ctx, api.JoinIn{Lease: l.plan.Lease, Secret: l.plan.Secret, Kind: api.JoinKindTask, PID: pid}, nil)
		}
		return errors.Join(err, l.teardown(ctx))
	},
	"processes end": func(ctx context.Context, l *life) error {
		if err := l.attach(ctx, false); err != nil {
			return err
		}
		l.kill()
		return nil
	},
	"connection ends with its box": func(ctx context.Context, l *life) error {
		if err := l.attach(ctx, true); err != nil {
			return err
		}
		return l.c.Close()
	},
	"abandon": func(ctx context.Context, l *life) error {
		if err := l.planned(ctx, false); err != nil {
			return err
		}
		return l.c.Abandon(ctx, api.AbandonIn{Lease: l.plan.Lease})
	},
	"close a plan": func(ctx context.Context, l *life) error {
		if err := l.planned(ctx, false); err != nil {
			return err
		}
		return l.c.Close()
	},
	"attach fails, abandon": func(ctx context.Context, l *life) error {
		if err := l.planned(ctx, false); err != nil {
			return err
		}
		err := l.c.Attach(ctx, api.AttachIn{Lease: l.plan.Lease, PID: 1 << 22}, nil)
		if gone := new(api.NoSuchProcess); !errors.As(err, &gone) {
			return fmt.Errorf("attach of no process: %w", err)
		}
		return l.c.Abandon(ctx, api.AbandonIn{Lease: l.plan.Lease})
	},
	"plan broken off": func(ctx context.Context, l *life) error {
		soon, cancel := soon(ctx, 2*time.Millisecond)
		defer cancel()
		l.planned(soon, true)
		return l.c.Close()
	},
	"attach broken off": func(ctx context.Context, l *life) error {
		if err := l.planned(ctx, true); err != nil {
			return err
		}
		pid, err := l.start()
		if err != nil {
			return err
		}
		soon, cancel := soon(ctx, 15*time.Millisecond)
		defer cancel()
		l.c.Attach(soon, api.AttachIn{Lease: l.plan.Lease, PID: pid}, nil)
		return l.c.Close()
	},
	"process dies while it is attached": func(ctx context.Context, l *life) error {
		if err := l.planned(ctx, true); err != nil {
			return err
		}
		pid, err := l.start()
		if err != nil {
			return err
		}
		time.AfterFunc(rand.N(10*time.Millisecond), func() { syscall.Kill(pid, syscall.SIGKILL) })
		err = l.c.Attach(ctx, api.AttachIn{Lease: l.plan.Lease, PID: pid}, nil)
		if failed := new(client.Failure); errors.As(err, &failed) {
			return err
		}
		return l.c.Close()
	},
	"teardown broken off": func(ctx context.Context, l *life) error {
		if err := l.attach(ctx, true); err != nil {
			return err
		}
		soon, cancel := soon(ctx, 10*time.Millisecond)
		defer cancel()
		l.teardown(soon)
		return l.c.Close()
	},
}

func soon(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, rand.N(limit))
}

// live runs one cycle as the operator, and ends what it started.
func (h *host) live(name string, do cycle) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := h.tryDial(operatorUID)
	if err != nil {
		return err
	}
	l := &life{h: h, c: c, name: name}
	defer l.kill()
	defer c.Close()
	return do(ctx, l)
}

func (l *life) planned(ctx context.Context, end bool) (err error) {
	policies := []api.Policy{denyPolicy(), openPolicy(), rules("192.0.2.0/24 443 tcp", "2001:db8::/32 any")}
	l.plan, err = l.c.Plan(ctx, api.PlanIn{Name: l.name, Mode: api.ModeHost, Policy: policies[rand.N(len(policies))], EndWithConnection: end})
	return err
}

func (l *life) attach(ctx context.Context, end bool) error {
	if err := l.planned(ctx, end); err != nil {
		return err
	}
	pid, err := l.start()
	if err != nil {
		return err
	}
	return l.c.Attach(ctx, api.AttachIn{Lease: l.plan.Lease, PID: pid}, nil)
}

func (l *life) teardown(ctx context.Context) error {
	_, err := l.c.Teardown(ctx, api.TeardownIn{Lease: l.plan.Lease, Secret: l.plan.Secret, Kill: true})
	return err
}

// start starts a process that waits.
func (l *life) start() (pid int, err error) {
	cmd := exec.Command("/bin/sleep", "4711")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: operatorUID, Gid: operatorUID}}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	l.ps = append(l.ps, cmd)
	return cmd.Process.Pid, nil
}

func (l *life) kill() {
	for _, p := range l.ps {
		p.Process.Kill()
		p.Wait()
	}
	l.ps = nil
}
