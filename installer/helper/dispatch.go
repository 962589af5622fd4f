package helper

import (
	"context"
	"encoding/json"
	"os"

	"github.com/gominimal/minhost/installer/api"
	"github.com/varlink/go/varlink"
)

type connKey struct{}

// dispatcher is the interface as the varlink library wants it.
type dispatcher struct{ h *Helper }

func (d *dispatcher) VarlinkGetName() string        { return api.Interface }
func (d *dispatcher) VarlinkGetDescription() string { return api.Description }

// VarlinkDispatch applies the access rule, then calls the method.
func (d *dispatcher) VarlinkDispatch(ctx context.Context, call varlink.Call, name string) error {
	m, ok := methods()[name]
	if !ok {
		return call.ReplyMethodNotFound(ctx, name)
	}
	c, err := d.h.admit(m.who, name, ctx.Value(connKey{}).(*conn))
	if err != nil {
		d.h.log.Info("call refused", "method", name, "cause", err)
		return d.h.reply(ctx, &call, err)
	}
	return m.run(d.h, ctx, c, &call)
}

// request is what a method may want beside its parameters.
type request struct {
	*caller
	fds []*os.File // closed behind the call
	// give are the descriptors of the reply; they are the request's, and closed behind it.
	give *[]*os.File
}

// send puts a descriptor into the reply. Of a call that fails it is closed unsent.
func (r request) send(f *os.File) {
	if f != nil {
		*r.give = append(*r.give, f)
	}
}

// unary makes a method of a function from parameters to parameters.
func unary[In, Out any](f func(*Helper, context.Context, request, In) (Out, error)) func(*Helper, context.Context, *caller, *varlink.Call) error {
	return func(h *Helper, ctx context.Context, c *caller, call *varlink.Call) error {
		var in In
		if call.In.Parameters != nil {
			if err := call.GetParameters(&in); err != nil {
				return h.reply(ctx, call, &api.Malformed{Message: "parameters: " + err.Error()})
			}
		}
		var give []*os.File
		r := request{c, call.RequestFDs(), &give}
		defer func() { message{fds: append(give, r.fds...)}.close() }()
		out, err := f(h, ctx, r, in)
		if err != nil {
			return h.reply(ctx, call, err)
		}
		return call.ReplyWithFDs(ctx, out, give)
	}
}

// sendError writes an error reply to a message that never became a call.
func sendError(ctx context.Context, call *varlink.Call, e api.Error) error {
	b, err := json.Marshal(struct {
		Error      string    `json:"error"`
		Parameters api.Error `json:"parameters"`
	}{e.ErrorName(), e})
	if err != nil {
		return err
	}
	_, err = call.Conn.Write(ctx, append(b, 0))
	return err
}
