package bench

import (
	"context"
	"os"
	"testing"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
	"github.com/gominimal/minhost/verify/netlab"
)

const socket = "/run/minhost/helper.sock"

// box is an attached box with one sleeping process.
type box struct {
	b    *testing.B
	c    *client.Client
	plan api.PlanOut
	leaf int // its open directory
}

func dial(b *testing.B) *client.Client {
	b.Helper()
	c, err := client.Dial(b.Context(), socket)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func newBox(b *testing.B, c *client.Client, p api.Policy) box {
	b.Helper()
	x := box{b: b, c: c}
	child := netlab.Start(b, netlab.Spawn{Leaf: netlab.NoLeaf}, "held")
	child.Line()
	x.attach(p, child.PID())
	dir, err := os.Open(x.plan.Leaf)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { dir.Close() })
	x.leaf = int(dir.Fd())
	return x
}

// attach is what bench-attach times.
func (x *box) attach(p api.Policy, pid int) {
	var err error
	if x.plan, err = x.c.Plan(x.b.Context(), api.PlanIn{Mode: api.ModeHost, Policy: p}); err == nil {
		err = x.c.Attach(x.b.Context(), api.AttachIn{Lease: x.plan.Lease, PID: pid}, nil)
	}
	if err != nil {
		x.b.Fatal(err)
	}
}

func (x *box) end(ctx context.Context) {
	if _, err := x.c.Teardown(ctx, api.TeardownIn{Lease: x.plan.Lease, Secret: x.plan.Secret, Kill: true}); err != nil {
		x.b.Error(err)
	}
}
