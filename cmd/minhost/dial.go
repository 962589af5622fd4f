package main

import (
	"context"
	"time"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/client"
)

// callTimeout bounds one call of a display verb. The helper answers them from memory; Verify makes
// a live self-test and is the slowest, at about a second.
const callTimeout = 20 * time.Second

// helperClient is what verbs other than run ask of the helper; installer/client has it.
type helperClient interface {
	List(context.Context) (api.ListOut, error)
	Status(context.Context) (api.StatusOut, error)
	Verify(context.Context) (api.VerifyOut, error)
	Explain(context.Context, api.ExplainIn) (api.ExplainOut, error)
	Repair(context.Context) (api.RepairOut, error)
	// Watch calls each for every event until each or the connection fails, or the context ends.
	Watch(ctx context.Context, in api.WatchIn, each func(api.Event) error) error
	Close() error
}

// dialer connects to the helper at a socket path.
type dialer func(ctx context.Context, socket string) (helperClient, error)

func dialHelper(ctx context.Context, socket string) (helperClient, error) {
	c, err := client.Dial(ctx, socket)
	if err != nil {
		return nil, err // not c: a nil *Client in an interface is no nil interface
	}
	return c, nil
}

// ask connects, makes one bounded call and closes the connection.
func ask[T any](ctx context.Context, env *environment, call func(context.Context, helperClient) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c, err := env.Dial(ctx, env.Socket)
	if err != nil {
		var none T
		return none, err
	}
	defer c.Close()
	return call(ctx, c)
}
