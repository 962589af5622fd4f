package helper

import (
	"context"
	"errors"
	"fmt"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/lease"
	"github.com/varlink/go/varlink"
)

// nextLs is the command that shows leases.
const nextLs = "minhost ls"

func noSuchLease(id string) error {
	return &api.NoSuchLease{Lease: api.Text(id), Message: fmt.Sprintf("no lease %s", api.Text(id)), Next: nextLs}
}

// answer turns the reply of the state table into the error of the interface; nil for Proceed and for
// Same, which the caller tells apart by the state.
func answer(r lease.Reply, l lease.Lease, op lease.Op) error {
	switch r {
	case lease.Proceed, lease.Same:
		return nil
	case lease.Busy:
		return &api.Busy{Lease: l.ID, Message: "another call is attaching lease " + l.ID, Next: "try again"}
	case lease.WrongState:
		return &api.WrongState{Lease: l.ID, State: string(l.State),
			Message: fmt.Sprintf("lease %s is %s and cannot %s", l.ID, l.State, op), Next: nextLs}
	}
	return noSuchLease(l.ID)
}

func invalid(field string, err error) error {
	return &api.InvalidArgument{Field: field, Message: field + ": " + err.Error()}
}

func internal(op string, err error) error {
	return &api.Internal{Message: fmt.Sprintf("%s: %v", op, err), Next: "minhost status"}
}

// reply sends an error of the interface; any other error becomes Internal.
func (h *Helper) reply(ctx context.Context, call *varlink.Call, err error) error {
	var e api.Error
	if !errors.As(err, &e) {
		e = internal("helper", err).(api.Error)
	}
	if e.ErrorName() == new(api.Internal).ErrorName() {
		h.log.Error("call failed", "cause", err)
	}
	return call.ReplyError(ctx, e.ErrorName(), e)
}
