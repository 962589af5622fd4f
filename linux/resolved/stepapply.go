package resolved

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer"
)

// Apply makes the link if it has to, configures it, and reads back and looks up until it works.
// When it does not, the link goes again: half a configuration is worse than none.
func (s *NamesStep) Apply(ctx context.Context, rec *installer.Record) error {
	if err := rec.Keep(struct{}{}); err != nil {
		return err
	}
	link, there, err := s.Links.Find(ctx, s.Params.Link)
	if err != nil {
		return err
	}
	if yes, _, err := s.delegated(ctx); err != nil {
		return err
	} else if yes {
		return s.leave(ctx, there && link.Ours)
	}
	if there && !link.Ours {
		return fmt.Errorf("make link %s: one exists that minhost did not make; look: ip -d link show %s", s.Params.Link, s.Params.Link)
	}
	// Again, and not only in the probe: at boot servers come and go.
	if harm, err := s.wouldHarm(ctx, link.Index); err != nil || harm != "" {
		if err == nil {
			err = errors.New(harm)
		}
		return fmt.Errorf("make link %s: %w", s.Params.Link, err)
	}
	if there && !link.has(s.Params.Address) {
		if err := s.delete(ctx); err != nil {
			return err
		}
		there = false
	}
	if !there {
		if err := s.Gate.Pass("make link " + s.Params.Link); err != nil {
			return err
		}
		if link, err = s.Links.Create(ctx, s.Params.Link, s.Params.Address); err != nil {
			return err
		}
	}
	if err := s.settle(ctx, link); err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWait)
		defer cancel()
		return errors.Join(fmt.Errorf("configure link %s: %w", s.Params.Link, err), s.Links.Delete(undo, s.Params.Link))
	}
	return s.keep(ctx)
}

// keep starts the service that keeps it so.
func (s *NamesStep) keep(ctx context.Context) error {
	if s.Keeper == nil {
		return nil
	}
	return s.Keeper.Start(ctx)
}

// leave leaves the names to the delegate, which is there already: between it and the link no name is lost.
func (s *NamesStep) leave(ctx context.Context, link bool) error {
	if link {
		if err := s.delete(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.Settle, settleWait))
	defer cancel()
	for {
		err := s.lookup(ctx)
		if err == nil {
			return s.keep(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("by a delegate: not within %s: %w", cmp.Or(s.Settle, settleWait), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// settle configures the link, again while resolved has not heard of it, until nothing differs and
// the control name resolves.
func (s *NamesStep) settle(ctx context.Context, link Link) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.Settle, settleWait))
	defer cancel()
	if err := s.Gate.Pass("configure link " + s.Params.Link); err != nil {
		return err
	}
	set := false
	for {
		err := error(nil)
		if !set {
			err = s.set(ctx, link)
			set = err == nil
		}
		if err != nil && !errors.Is(err, ErrNoLink) {
			return err
		}
		if set {
			if err = s.works(ctx, link); err == nil {
				return nil
			}
		}
		// Not waited for: somebody who takes it away again and again would keep us here.
		if now, there, findErr := s.Links.Find(ctx, s.Params.Link); findErr == nil && (!there || now.Index != link.Index) {
			return errors.New("somebody took it away meanwhile")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", cmp.Or(s.Settle, settleWait), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// set configures the link. A lookup that waits for a server which somebody else gave it, and which cannot be
// reached by this link, waits some 3 s to 5 s more, and every later one for the same name with it
// (resolved 252 and 257: a transaction keeps its server): such a server goes with its lookups first.
func (s *NamesStep) set(ctx context.Context, link Link) error {
	want := s.Params.wanted()
	st, err := s.Bus.Link(ctx, link.Index)
	if err != nil {
		return err
	}
	if len(st.Servers) > 0 && !slices.Equal(st.Servers, want.Servers) {
		if err := s.Bus.Revert(ctx, link.Index); err != nil {
			return err
		}
	}
	return s.Bus.Set(ctx, link.Index, want)
}

func (s *NamesStep) works(ctx context.Context, link Link) error {
	d, err := s.compare(ctx, link)
	if err != nil {
		return err
	}
	if len(d) > 0 {
		return errors.New(strings.Join(d, "; "))
	}
	return s.lookup(ctx)
}

func (s *NamesStep) delete(ctx context.Context) error {
	if err := s.Gate.Pass("remove link " + s.Params.Link); err != nil {
		return err
	}
	return s.Links.Delete(ctx, s.Params.Link)
}

// Undo removes the link; with it everything that resolved knew about it goes. The keeper first: it
// would make the link again.
func (s *NamesStep) Undo(ctx context.Context, _ installer.Record) error {
	var err error
	if s.Keeper != nil {
		err = s.Keeper.Stop(ctx)
	}
	return errors.Join(err, s.delete(ctx))
}
