package client_test

import (
	"io"
	"os"
	"sync/atomic"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/installer/client/clienttest"
)

// pipes gives each reply the writing end of a pipe, and keeps the other: it ends when nobody has the first any
// more.
type pipes struct {
	t      *testing.T
	newest atomic.Pointer[os.File]
}

func (p *pipes) give(string) *os.File {
	r, w, err := os.Pipe()
	if err != nil {
		p.t.Error(err)
		return nil
	}
	p.newest.Store(r)
	p.t.Cleanup(func() { r.Close() })
	return w
}

// ended wants the newest descriptor to be closed everywhere.
func (p *pipes) ended(what string) {
	p.t.Helper()
	if n, err := p.newest.Load().Read(make([]byte, 1)); n != 0 || err != io.EOF {
		p.t.Errorf("%s: %d, %v; want the end", what, n, err)
	}
}

// TestDescriptorsComeBack: methods that have a descriptor return it, the others close what they are sent.
func TestDescriptorsComeBack(t *testing.T) {
	p := &pipes{t: t}
	h := clienttest.Start(t, clienttest.Behaviour{Give: p.give})
	c := dial(t, h)
	// Not with end_with_connection: the fake would kill this process.
	plan, err := c.Plan(t.Context(), api.PlanIn{Mode: api.ModeHost, Policy: plan.Policy})
	if err != nil {
		t.Fatal(err)
	}
	p.ended("Plan")
	for name, call := range map[string]func(*client.Client) (*os.File, error){
		"AttachTap": func(c *client.Client) (*os.File, error) {
			return c.AttachTap(t.Context(), api.AttachIn{Lease: plan.Lease, PID: os.Getpid()}, nil)
		},
		"Join": func(c *client.Client) (*os.File, error) {
			_, f, err := c.Join(t.Context(), api.JoinIn{Lease: plan.Lease, Secret: plan.Secret, Kind: api.JoinKindTask, PID: os.Getpid()}, nil)
			return f, err
		},
		"Listen": func(c *client.Client) (*os.File, error) {
			_, f, err := c.Listen(t.Context(), api.ListenIn{Lease: plan.Lease, Secret: plan.Secret, Protocol: api.ProtocolTCP})
			return f, err
		},
	} {
		f, err := call(c)
		if err != nil || f == nil {
			t.Errorf("%s: %v, %v", name, f, err)
			continue
		}
		if _, err := f.Write([]byte("x")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := make([]byte, 1)
		if _, err := p.newest.Load().Read(got); err != nil || got[0] != 'x' {
			t.Errorf("%s: another descriptor came: %v", name, err)
		}
		f.Close()
		p.ended(name)
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.ended("Status")
}
