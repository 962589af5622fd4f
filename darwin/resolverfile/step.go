package resolverfile

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/filestep"
)

// ID of the step.
const ID installer.ID = "names"

// Step is the file, and lookups that get through by it. It is optional: a profile or a VPN may keep a
// host from ever using it, and boxes have their addresses all the same.
type Step struct {
	Zone   Zone
	FS     host.FS
	System System
	Clock  host.Clock
	// Known is a name of the zone that always has the address 127.0.0.1.
	Known string
	// Answers asks the answerer itself, past the system.
	Answers func(context.Context) error
	// Asked looks a name up that nobody looked up before, and tells whether the question came to the answerer;
	// known is false where nobody can tell. Nil never knows.
	Asked func(ctx context.Context, look func(ctx context.Context, name string)) (asked, known bool)
	// Libc looks a name up by getaddrinfo; nil where that would ask another system's resolver.
	Libc func(context.Context, string) (netip.Addr, error)
}

var _ installer.Step = (*Step)(nil)

const loses = "names of boxes do not resolve; addresses work"

func (s *Step) ID() installer.ID { return ID }
func (s *Step) Describe() string {
	return fmt.Sprintf("write %s: lookups of %s go to %s", s.Zone.Path(), s.Zone.Name, s.Zone.Server)
}
func (s *Step) Lifetime() installer.Lifetime { return installer.Persistent }
func (s *Step) Required() bool               { return false }

func (s *Step) file() *filestep.Step {
	return filestep.New(s.FS, filestep.Spec{ID: ID, Describe: s.Describe(), Loses: loses, Path: s.Zone.Path(), Optional: true,
		Content: Render(s.Zone), Attr: host.Attr{Mode: 0o644}, Ours: Ours})
}

// Probe compares the file, then looks what the system makes of it, then looks a name up as programs do.
func (s *Step) Probe(ctx context.Context) (installer.Observation, error) {
	obs, err := s.file().Probe(ctx)
	if err != nil {
		return obs, err
	}
	if obs.State != installer.Satisfied {
		return s.about(obs), nil
	}
	all, err := s.System.Resolvers(ctx)
	if err != nil {
		return obs, err
	}
	ok, conflicts := s.Zone.shown(all)
	if !ok {
		obs.State, obs.Next = installer.Drifted, "minhost finalize-install"
		obs.Detail = fmt.Sprintf("the file is right, but scutil --dns shows no resolver for %s at %s", s.Zone.Name, s.Zone.Server)
		if len(conflicts) > 0 {
			obs.Detail += ": another one has the domain: " + strings.Join(conflicts, ", ")
		}
		return obs, nil
	}
	return s.probeLookup(ctx, obs, conflicts), nil
}

// about adds what is known of a file that is not as wanted.
func (s *Step) about(obs installer.Observation) installer.Observation {
	content, err := s.FS.ReadFile(s.Zone.Path())
	if err != nil || obs.State != installer.Foreign {
		return obs
	}
	obs.Next = "cat " + installer.Quote(s.Zone.Path())
	if strings.HasPrefix(string(content), Marker) {
		obs.Detail = s.Zone.Path() + " was edited by somebody since minhost wrote it"
		obs.Next += "; to have it written anew: sudo rm " + installer.Quote(s.Zone.Path())
	}
	if faults := Faults(content, s.Zone); len(faults) > 0 {
		obs.Detail += ": " + strings.Join(faults, "; ")
	}
	return obs
}

func (s *Step) probeLookup(ctx context.Context, obs installer.Observation, conflicts []string) installer.Observation {
	if err := s.lookup(ctx); err != nil {
		if direct := s.Answers(ctx); direct != nil {
			obs.State, obs.Detail, obs.Next = installer.Blocked, "the answerer does not answer: "+direct.Error(), "minhost finalize-install"
			obs.Loses = loses + ", and each lookup stalls for up to a minute"
			return obs
		}
		// Details are cut off at 255 octets: the one cause that is known replaces the likely ones.
		cause := "an encrypted-DNS profile, a VPN or iCloud Private Relay answers instead"
		if len(conflicts) > 0 {
			cause = "another resolver has the domain: " + strings.Join(conflicts, ", ")
		}
		obs.State = installer.Blocked
		obs.Detail = fmt.Sprintf("scutil --dns is right, and %s answers, but the system's lookup %s: %s (%v)", s.Zone.Server, s.where(ctx), cause, err)
		obs.Next = "exempt " + s.Zone.Name + " there (System Settings > General > Device Management, > VPN, > Network); then: sudo killall -HUP mDNSResponder"
		return obs
	}
	obs.Detail, obs.Loses = "scutil --dns shows it, and the system looks "+s.Known+" up through it", ""
	if beside := s.beside(); len(beside) > 0 {
		obs.Detail += "; beside it, read as resolvers too: " + strings.Join(beside, ", ")
	}
	return obs
}

// where tells what became of the system's lookup, as far as anybody can know.
func (s *Step) where(ctx context.Context) string {
	if s.Asked == nil {
		return "gets elsewhere"
	}
	asked, known := s.Asked(ctx, func(ctx context.Context, name string) {
		_, _ = s.System.Lookup(ctx, name) // there is no such name: only the question counts
	})
	switch {
	case !known:
		return "gets elsewhere"
	case asked:
		return "comes to it, and the answer is not taken"
	}
	return "does not come to it"
}

func (s *Step) lookup(ctx context.Context) error {
	got, err := s.System.Lookup(ctx, s.Known)
	if err == nil && got != localhost {
		err = fmt.Errorf("dscacheutil gives %s for %s", got, s.Known)
	}
	if err != nil || s.Libc == nil {
		return err
	}
	if got, err = s.Libc(ctx, s.Known); err == nil && got != localhost {
		err = fmt.Errorf("getaddrinfo gives %s for %s", got, s.Known)
	}
	return err
}

var localhost = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// beside lists copies of the file (min.internal.bak, min.internal~), which editors and people leave.
func (s *Step) beside() []string {
	names, err := s.FS.ReadDir(Dir)
	if err != nil {
		return nil
	}
	var found []string
	for _, n := range names {
		if n != s.Zone.Name && strings.HasPrefix(strings.TrimPrefix(n, "."), s.Zone.Name) {
			found = append(found, path.Join(Dir, n))
		}
	}
	return found
}

const (
	shownWait  = 10 * time.Second
	shownEvery = 200 * time.Millisecond
)

// Apply writes the file, once the answerer answers, and has the system read it. Where the file is right
// already it only does the latter, which is safe at any time.
func (s *Step) Apply(ctx context.Context, rec *installer.Record) error {
	if err := s.Answers(ctx); err != nil {
		return fmt.Errorf("%s is not written over an answerer that does not answer, lookups would stall: %w", s.Zone.Path(), err)
	}
	obs, err := s.file().Probe(ctx)
	if err != nil {
		return err
	}
	if obs.State != installer.Satisfied {
		if err := s.file().Apply(ctx, rec); err != nil {
			return err
		}
	}
	if err := s.System.Flush(ctx); err != nil {
		return err
	}
	for end := s.Clock.Now().Add(shownWait); ; {
		all, err := s.System.Resolvers(ctx)
		if err != nil {
			return err
		}
		if ok, _ := s.Zone.shown(all); ok || !s.Clock.Now().Before(end) {
			return nil // the next probe says what came of it
		}
		if err := s.Clock.Sleep(ctx, shownEvery); err != nil {
			return err
		}
	}
}

// Undo removes the file, and the folder where minhost made it and nobody else uses it, then has the
// system forget.
func (s *Step) Undo(ctx context.Context, rec installer.Record) error {
	return errors.Join(s.file().Undo(ctx, rec), s.System.Flush(ctx))
}
