package resolved

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer"
)

// holdEvery is how often the link is looked at: what somebody broke is right again within two
// seconds, the time for putting it right included.
const holdEvery = time.Second

// At most so many repairs in so long. Somebody who takes the link or its settings away all the time wins
// then: the names are gone for up to that long, and the host is not kept busy for ever.
const (
	repairsAtMost = 20
	repairsWithin = time.Minute
)

// Hold is `minhost names`: it keeps the link right until the context ends, and leaves it then (a
// restart of the unit must not take names away; undo removes it). ready is called once, after the
// first look. At boot resolved has no server until the network has one, which cannot be told from
// a host that lives on FallbackDNS=: the link is made when the first server appears, and taken
// away when the last one goes. Log lines are written when something changes; repaired, which may be
// nil, is told what was not right any more and is again.
func (s *NamesStep) Hold(ctx context.Context, log *slog.Logger, ready func(), repaired func(what string)) error {
	said := ""
	say := func(level slog.Level, line string, args ...any) {
		if line != said {
			log.Log(ctx, level, line, args...)
			said = line
		}
	}
	k := keeping{budget: budget{most: repairsAtMost, within: repairsWithin}}
	for first := true; ; first = false {
		line, broken, err := s.hold(ctx, &k, time.Now())
		switch {
		case err != nil:
			say(slog.LevelWarn, "names: "+err.Error())
		case broken != "":
			log.Warn("names: put right", "was", broken)
			if repaired != nil {
				repaired(broken)
			}
		default:
			say(slog.LevelInfo, "names: "+line)
		}
		if first {
			ready()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(holdEvery):
		}
	}
}

// keeping is what Hold remembers between two looks.
type keeping struct {
	// right: it was at the last look, so that what is wrong now is somebody's doing, and no boot.
	right  bool
	budget budget
}

// budget bounds how often something happens.
type budget struct {
	most   int
	within time.Duration
	times  []time.Time
}

// take tells whether it may happen now, and counts it.
func (b *budget) take(now time.Time) bool {
	for len(b.times) > 0 && now.Sub(b.times[0]) >= b.within {
		b.times = b.times[1:]
	}
	if len(b.times) >= b.most {
		return false
	}
	b.times = append(b.times, now)
	return true
}

// hold looks once and puts right; broken is what was put right. It does without the lookup of the probe:
// every second for ever would be a load, and a dead answerer is not mended by another link.
func (s *NamesStep) hold(ctx context.Context, k *keeping, now time.Time) (line, broken string, err error) {
	path, _, blocked, err := s.path(ctx)
	if err != nil {
		return "", "", err
	}
	if blocked == bypassed {
		return path.Cause, "", nil
	}
	if blocked != "" {
		return blocked, "", nil
	}
	link, there, err := s.Links.Find(ctx, s.Params.Link)
	if err != nil {
		return "", "", err
	}
	if yes, _, err := s.delegated(ctx); yes || err != nil {
		k.right = k.right || yes
		if yes && there && link.Ours {
			err = s.delete(ctx)
		}
		return "by a delegate; " + path.String(), "", err
	}
	harm, err := s.wouldHarm(ctx, link.Index)
	if err != nil {
		return "", "", err
	}
	if harm != "" {
		k.right = false
		if there && link.Ours {
			err = s.delete(ctx)
		}
		return harm, "", err
	}
	broken = "no link " + s.Params.Link
	if there && link.Ours {
		d, err := s.compare(ctx, link)
		if err != nil {
			return "", "", err
		}
		broken = strings.Join(d, "; ")
	}
	if broken == "" {
		k.right = true
		return path.String(), "", nil
	}
	if !k.budget.take(now) {
		return fmt.Sprintf("somebody changes %s again and again (%s): it is left alone for up to %s", s.Params.Link, broken, k.budget.within), "", nil
	}
	was := k.right
	k.right = false
	if err := s.Apply(ctx, &installer.Record{}); err != nil {
		return "", "", err
	}
	k.right = true
	if !was {
		broken = ""
	}
	return path.String(), broken, nil
}
