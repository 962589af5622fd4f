package loopback

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/gominimal/minhost/installer/host"
)

const (
	// tries and pause bound the retry inside one run: right after a boot lo0 may still be on its way up.
	// What this cannot mend launchd starts again, because the job then ends with a status other than 0.
	tries = 8
	pause = 500 * time.Millisecond
)

// Keeper brings lo0 to what is wanted.
type Keeper struct {
	Interfaces Interfaces
	Bind       func(netip.Addr) error
	Clock      host.Clock
}

// Outcome is what Ensure did. Present counts addresses that can be bound.
type Outcome struct {
	Added, Mended, Present int
}

// Ensure adds and mends until all 254 addresses have their mask and can be bound, or until it has tried
// often enough; then the error joins what went wrong in the last try. What is complete costs no change.
func (k Keeper) Ensure(ctx context.Context) (Outcome, error) {
	var o Outcome
	for try := 1; ; try++ {
		err := k.once(ctx, &o)
		if err == nil || ctx.Err() != nil || try == tries {
			return o, err
		}
		if err := k.Clock.Sleep(ctx, pause); err != nil {
			return o, err
		}
	}
}

func (k Keeper) once(ctx context.Context, o *Outcome) error {
	have, err := k.Interfaces.List(ctx)
	if err != nil {
		return fmt.Errorf("list %s: %w", Interface, err)
	}
	d := Compare(have)
	var errs []error
	set := func(a netip.Addr, n *int) {
		if err := k.Interfaces.Set(ctx, Alias{a, HostMask}); err != nil {
			errs = append(errs, fmt.Errorf("alias %s: %w", a, err))
			return
		}
		*n++
	}
	for _, a := range d.Missing {
		set(a, &o.Added)
	}
	for _, w := range d.Wrong {
		set(w.Addr, &o.Mended)
	}
	unbound, cause := Unbound(k.Bind)
	o.Present = Count - len(unbound)
	if len(errs) > 0 {
		return fmt.Errorf("%d of %d aliases: %w", len(errs), Count, errs[0])
	}
	if cause != nil {
		return fmt.Errorf("%d of %d addresses cannot be bound: %w", len(unbound), Count, cause)
	}
	// The word of the call that set a mask is not the mask.
	if have, err = k.Interfaces.List(ctx); err != nil {
		return fmt.Errorf("list %s: %w", Interface, err)
	}
	if d := Compare(have); !d.Empty() {
		return errors.New(d.String())
	}
	return nil
}
