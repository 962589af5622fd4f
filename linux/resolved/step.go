package resolved

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
)

// NamesID is the id of NamesStep.
const NamesID installer.ID = "names"

// settleWait bounds how long resolved may take to hear of a new link and to open its scope: some 0.1 s, and
// more than 3 s on an emulated processor that others use too.
const settleWait = 10 * time.Second

// NamesStep has the link, configured and working, and none where a delegate does its work. Optional: without it every name still resolves
// for whoever asks the answerer.
type NamesStep struct {
	Params Params
	Facts  func() (Facts, error) // Running is filled in from the bus
	Links  Links
	Bus    Bus
	Gate   host.Gate
	// Keeper is the service that keeps the link right from then on; nil where there is none, and in
	// that service itself.
	Keeper Keeper
	// Ask asks a DNS server of this host, for hosts without systemd-resolved; nil asks nobody.
	Ask func(ctx context.Context, server netip.Addr, name string) ([]netip.Addr, error)
	// Settle is in place of settleWait, in tests.
	Settle time.Duration
}

// Keeper is the service that runs Hold.
type Keeper interface {
	Active(context.Context) (bool, error)
	Start(context.Context) error
	// Stop ends it; nil when there is no such service.
	Stop(context.Context) error
}

func (s *NamesStep) ID() installer.ID             { return NamesID }
func (s *NamesStep) Lifetime() installer.Lifetime { return installer.Boot }
func (s *NamesStep) Required() bool               { return false }
func (s *NamesStep) Describe() string {
	return fmt.Sprintf("make link %s, so that systemd-resolved asks the answerer for ~%s", s.Params.Link, s.Params.Zone)
}

func (s *NamesStep) lose() string {
	return fmt.Sprintf("no program finds NAME.%s by itself", s.Params.Zone)
}

func (s *NamesStep) dig() string {
	return fmt.Sprintf("dig @%s -p %d NAME.%s", s.Params.Answerer.Addr(), s.Params.Answerer.Port(), s.Params.Zone)
}

// Probe reads files, netlink and D-Bus, and looks one name up the way programs do.
func (s *NamesStep) Probe(ctx context.Context) (installer.Observation, error) {
	obs := installer.Observation{Loses: s.lose()}
	path, facts, blocked, err := s.path(ctx)
	if err != nil {
		return obs, err
	}
	next := s.dig()
	if blocked == bypassed {
		if detail, ok := s.told(ctx, facts); ok {
			obs.State, obs.Detail, obs.Loses = installer.Satisfied, detail, ""
			return obs, nil
		}
		blocked, next = s.without(facts, path)
	}
	link, there, err := s.Links.Find(ctx, s.Params.Link)
	if err != nil {
		return obs, err
	}
	later := false
	if blocked == "" {
		yes := false
		yes, later, err = s.delegated(ctx)
		if yes {
			err = s.byDelegate(ctx, there && link.Ours, path, &obs)
		}
		if yes || err != nil {
			return obs, err
		}
	}
	if there && !link.Ours {
		obs.State, obs.Detail = installer.Foreign, fmt.Sprintf("a link %s exists that minhost did not make", s.Params.Link)
		obs.Next = "ip -d link show " + s.Params.Link
		return obs, nil
	}
	if blocked == "" {
		blocked, err = s.wouldHarm(ctx, link.Index)
		if err != nil {
			return obs, err
		}
		// A delegate takes no name away (measured on 262).
		if later {
			next = "systemctl restart systemd-resolved"
		}
	}
	switch {
	case blocked != "":
		obs.State, obs.Detail, obs.Next = installer.Blocked, blocked, next
	case !there:
		obs.State, obs.Detail = installer.Absent, fmt.Sprintf("no link %s; %s", s.Params.Link, path)
	default:
		err = s.effect(ctx, link, path, &obs)
	}
	return obs, err
}

// bypassed is the cause that without explains.
const bypassed = "no program asks systemd-resolved"

// path reads who will see the names, and why it is of no use to go on when nobody will.
func (s *NamesStep) path(ctx context.Context) (p Path, f Facts, blocked string, err error) {
	f, err = s.Facts()
	if err != nil {
		return p, f, "", err
	}
	if f.Running, err = s.Bus.Running(ctx); err != nil {
		return p, f, "", fmt.Errorf("ask the system bus for systemd-resolved: %w", err)
	}
	p = Read(f)
	switch {
	case f.NixOS:
		blocked = "NixOS generates the resolver's configuration: minhost changes none of it"
	case !p.Libc && !p.Direct:
		blocked = bypassed
	}
	return p, f, blocked, nil
}

// wouldHarm says why a link of ours would take other names away.
func (s *NamesStep) wouldHarm(ctx context.Context, own int) (string, error) {
	servers, fallback, err := s.Bus.Servers(ctx)
	if err != nil {
		return "", err
	}
	if s.Params.fallbackOnly(servers, fallback, own) {
		return "systemd-resolved has no server but FallbackDNS=: any new link would take all other names away; set DNS= in resolved.conf first", nil
	}
	return "", nil
}

// effect compares the link that is there, and then asks for a name.
func (s *NamesStep) effect(ctx context.Context, link Link, path Path, obs *installer.Observation) error {
	d, err := s.compare(ctx, link)
	if err != nil {
		return err
	}
	return s.judge(ctx, d, path.String(), obs)
}

// byDelegate is effect where a delegate does the link's work.
func (s *NamesStep) byDelegate(ctx context.Context, link bool, path Path, obs *installer.Observation) error {
	var d []string
	if link {
		d = append(d, "link "+s.Params.Link+" is there beside the delegate that does its work")
	}
	return s.judge(ctx, d, "by a delegate; "+path.String(), obs)
}

// judge asks for a name where nothing else is wrong.
func (s *NamesStep) judge(ctx context.Context, d []string, right string, obs *installer.Observation) error {
	if len(d) == 0 {
		if err := s.lookup(ctx); err != nil {
			d = append(d, err.Error())
		}
	}
	if len(d) == 0 && s.Keeper != nil {
		active, err := s.Keeper.Active(ctx)
		if err != nil {
			return err
		}
		if !active {
			d = append(d, "nobody keeps the names as they are")
		}
	}
	if len(d) > 0 {
		obs.State, obs.Detail = installer.Drifted, strings.Join(d, "; ")
		return nil
	}
	obs.State, obs.Detail, obs.Loses = installer.Satisfied, right, ""
	return nil
}

func (s *NamesStep) compare(ctx context.Context, link Link) ([]string, error) {
	if !link.has(s.Params.Address) {
		return []string{fmt.Sprintf("%s is down or has lost %s", s.Params.Link, s.Params.Address)}, nil
	}
	st, err := s.Bus.Link(ctx, link.Index)
	if errors.Is(err, ErrNoLink) {
		return []string{err.Error()}, nil
	}
	return s.Params.differs(st), err
}

// lookup asks resolved for the one name that always has an answer.
func (s *NamesStep) lookup(ctx context.Context) error {
	addrs, err := s.Bus.Resolve(ctx, s.Params.Control)
	if err != nil {
		return err
	}
	if !slices.Equal(addrs, []netip.Addr{s.Params.Answer}) {
		return fmt.Errorf("%s resolves to %v, not %s", s.Params.Control, addrs, s.Params.Answer)
	}
	return nil
}
