package darwin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/gominimal/minhost/darwin/loopback"
	"github.com/gominimal/minhost/installer"
)

// RangeID is the id of the step, which the boot job names.
const RangeID installer.ID = "range"

// RangeStep has all 254 addresses of the range on lo0. They are gone after every boot; the job
// dev.minimal.loopback brings them back by this very step.
type RangeStep struct {
	Keeper loopback.Keeper
	// Boot is read for the one line of the log.
	Boot Boot
	Log  *slog.Logger
}

var _ installer.Step = RangeStep{}

func (RangeStep) ID() installer.ID { return RangeID }
func (RangeStep) Describe() string {
	return "add 127.0.64.1 to 127.0.64.254 to lo0, each with the mask of one address"
}
func (RangeStep) Lifetime() installer.Lifetime { return installer.Boot }
func (RangeStep) Required() bool               { return true }

// Probe reads masks and binds every address: an absent one does not refuse a connection, it hangs it.
func (s RangeStep) Probe(ctx context.Context) (installer.Observation, error) {
	o := installer.Observation{Loses: "no box gets an address or a name", Next: "minhost finalize-install"}
	have, err := s.Keeper.Interfaces.List(ctx)
	if err != nil {
		return o, err
	}
	d := loopback.Compare(have)
	unbound, cause := loopback.Unbound(s.Keeper.Bind)
	switch {
	case len(d.Missing) == loopback.Count:
		o.State, o.Detail = installer.Absent, "none of 254 addresses is on lo0"
	case !d.Empty():
		o.State, o.Detail = installer.Drifted, d.String()
	case cause != nil:
		o.State, o.Detail, o.Next = installer.Drifted, fmt.Sprintf("%d of 254 addresses cannot be bound: %v", len(unbound), cause), "ifconfig lo0"
	default:
		o.State, o.Detail, o.Loses, o.Next = installer.Satisfied, "254 of 254 addresses bound, each /32", "", ""
	}
	return o, nil
}

// before is what lo0 had of the range when minhost came.
type before struct {
	Aliases []alias `json:"aliases"`
}

type alias struct {
	Addr netip.Addr `json:"addr"`
	Mask uint32     `json:"mask"`
}

// Apply keeps what of the range was there, then adds and mends.
func (s RangeStep) Apply(ctx context.Context, rec *installer.Record) error {
	have, err := s.Keeper.Interfaces.List(ctx)
	if err != nil {
		return err
	}
	var b before
	for _, a := range have {
		if loopback.InRange(a.Addr) {
			b.Aliases = append(b.Aliases, alias(a))
		}
	}
	if err := rec.Keep(b); err != nil {
		return err
	}
	o, err := s.Keeper.Ensure(ctx)
	line := append(s.Boot.Stamp(ctx), "added", o.Added, "mended", o.Mended, "present", fmt.Sprintf("%d/%d", o.Present, loopback.Count))
	if err != nil {
		s.Log.Error("not ready", append([]any{"part", string(RangeID), "cause", err}, line...)...)
		return err
	}
	s.Log.Info("ready", append([]any{"part", string(RangeID)}, line...)...)
	return nil
}

// Undo removes the aliases of the range, and leaves those that were there before as they were. It goes
// on past failures.
func (s RangeStep) Undo(ctx context.Context, rec installer.Record) error {
	var b before
	if ok, err := rec.Kept(&b); err != nil || !ok {
		return err // cut off before the first change
	}
	was := map[netip.Addr]uint32{}
	for _, a := range b.Aliases {
		was[a.Addr] = a.Mask
	}
	have, err := s.Keeper.Interfaces.List(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, a := range have {
		if !loopback.InRange(a.Addr) {
			continue
		}
		mask, there := was[a.Addr]
		switch {
		case !there:
			errs = append(errs, s.Keeper.Interfaces.Remove(ctx, a.Addr))
		case mask != a.Mask:
			errs = append(errs, s.Keeper.Interfaces.Set(ctx, loopback.Alias{Addr: a.Addr, Mask: mask}))
		}
	}
	return errors.Join(errs...)
}
