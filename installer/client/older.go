package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/varlink/go/varlink"

	"github.com/gominimal/minhost/installer/api"
)

// Older is the answer of a helper that does not know a method, a field or a value which this program knows: one
// sentence, and the command that brings the helper up to date. It is never the helper that is newer, since what was in
// the interface once stays in it.
type Older struct{ Failure }

// older gives an answer that is due to the helper's age its name; any other stays what it is. The helper is asked
// which interface it speaks only where it did not understand. The caller has the turn.
func (c *Client) older(ctx context.Context, method string, answered error) error {
	what := misunderstood(answered)
	if what == "" {
		return answered
	}
	description, err := c.conn.GetInterfaceDescription(ctx, api.Interface)
	if err == nil && description == api.Description {
		return answered // the program that called sends what this version does not know either
	}
	var version string
	if err == nil {
		err = c.conn.GetInfo(ctx, nil, nil, &version, nil, nil)
	}
	if err != nil {
		c.Close()
		return callFailure(method, answered)
	}
	return &Older{Failure{Err: answered, Next: "minhost finalize-install",
		Message: fmt.Sprintf("the helper, version %s, is older than this program: %s: %s", api.Text(version), method, what)}}
}

// misunderstood says what a helper did not understand of the form of a call; "" when it did.
func misunderstood(answered error) string {
	var invalid *api.InvalidArgument
	var malformed *api.Malformed
	switch {
	case errors.As(answered, &invalid) && (invalid.Field == "parameters" || strings.HasPrefix(invalid.Field, "parameters.")):
		return api.Text(strings.TrimPrefix(invalid.Message, "parameters."))
	case errors.As(answered, &malformed):
		return api.Text(malformed.Message)
	case errors.As(answered, new(*varlink.MethodNotFound)), errors.As(answered, new(*varlink.MethodNotImplemented)), errors.As(answered, new(*varlink.InterfaceNotFound)):
		return "there is no such method"
	}
	return ""
}
