package client

import (
	"context"
	"os"

	"github.com/gominimal/minhost/installer/api"
)

// What each method does, and which errors it has, is documented in dev.minimal.Host.varlink and
// with its <Method>In type.

// Plan reserves a lease. It lives until it is attached or this connection ends.
func (c *Client) Plan(ctx context.Context, in api.PlanIn) (out api.PlanOut, err error) {
	return out, c.call(ctx, "Plan", in, &out)
}

// Attach puts a held process into the leaf of a plan. The process is pidfd, or in.PID where
// pidfd is nil (a process that this program has not waited for: its number cannot be reused). A box
// of mode own_ip is attached with AttachTap.
func (c *Client) Attach(ctx context.Context, in api.AttachIn, pidfd *os.File) error {
	var out api.AttachOut
	return c.call(ctx, "Attach", in, &out, files(pidfd)...)
}

// AttachTap is Attach for a box of mode own_ip. It returns the descriptor of the tap, which nobody
// gets a second time; the caller closes it.
func (c *Client) AttachTap(ctx context.Context, in api.AttachIn, pidfd *os.File) (tap *os.File, err error) {
	var out api.AttachOut
	return c.callForFile(ctx, "Attach", in, &out, files(pidfd)...)
}

// Join puts a further held process, given as in Attach, into the leaf of an attached box. For a
// none or own_ip box it returns the network namespace that the process must enter, which the caller
// closes; nil for others.
func (c *Client) Join(ctx context.Context, in api.JoinIn, pidfd *os.File) (out api.JoinOut, netns *os.File, err error) {
	netns, err = c.callForFile(ctx, "Join", in, &out, files(pidfd)...)
	return out, netns, err
}

// Listen returns a socket on the address of an attached box: listening (tcp) or bound (udp). It
// carries the box's verdict for ever, whoever holds it; the caller closes it.
func (c *Client) Listen(ctx context.Context, in api.ListenIn) (out api.ListenOut, socket *os.File, err error) {
	socket, err = c.callForFile(ctx, "Listen", in, &out)
	return out, socket, err
}

// Update replaces the policy of an attached box.
func (c *Client) Update(ctx context.Context, in api.UpdateIn) error {
	var out api.UpdateOut
	return c.call(ctx, "Update", in, &out)
}

// Adopt makes this connection the owner of an attached box.
func (c *Client) Adopt(ctx context.Context, in api.AdoptIn) error {
	var out api.AdoptOut
	return c.call(ctx, "Adopt", in, &out)
}

// Abandon gives a plan of this connection back.
func (c *Client) Abandon(ctx context.Context, in api.AbandonIn) error {
	var out api.AbandonOut
	return c.call(ctx, "Abandon", in, &out)
}

// Teardown ends an attached box and says what it was refused.
func (c *Client) Teardown(ctx context.Context, in api.TeardownIn) (out api.TeardownOut, err error) {
	return out, c.call(ctx, "Teardown", in, &out)
}

// List lists the leases.
func (c *Client) List(ctx context.Context) (out api.ListOut, err error) {
	return out, c.call(ctx, "List", api.ListIn{}, &out)
}

// Status tells the health of the helper.
func (c *Client) Status(ctx context.Context) (out api.StatusOut, err error) {
	return out, c.call(ctx, "Status", api.StatusIn{}, &out)
}

// Verify makes the checks that need root.
func (c *Client) Verify(ctx context.Context) (out api.VerifyOut, err error) {
	return out, c.call(ctx, "Verify", api.VerifyIn{}, &out)
}

// Count has what this process sends and receives counted from now on, as a runner's, and says where it was put.
func (c *Client) Count(ctx context.Context) (out api.CountOut, err error) {
	return out, c.call(ctx, "Count", api.CountIn{}, &out)
}

// Explain tells why a box may or may not reach a destination.
func (c *Client) Explain(ctx context.Context, in api.ExplainIn) (out api.ExplainOut, err error) {
	return out, c.call(ctx, "Explain", in, &out)
}

// Repair compares the table with the leases and mends it. Root only.
func (c *Client) Repair(ctx context.Context) (out api.RepairOut, err error) {
	return out, c.call(ctx, "Repair", api.RepairIn{}, &out)
}

func files(f *os.File) []*os.File {
	if f == nil {
		return nil
	}
	return []*os.File{f}
}
