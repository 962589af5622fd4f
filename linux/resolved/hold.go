package resolved

import (
	"context"
	"log/slog"
	"time"

	"github.com/gominimal/minhost/installer"
)

// holdEvery is how often the link is looked at: what somebody broke is right again within two
// seconds, the time for putting it right included.
const holdEvery = time.Second

// Hold is `minhost names`: it keeps the link right until the context ends, and leaves it then (a
// restart of the unit must not take names away; undo removes it). ready is called once, after the
// first look. At boot resolved has no server until the network has one, which cannot be told from
// a host that lives on FallbackDNS=: the link is made when the first server appears, and taken
// away when the last one goes. Log lines are written when something changes.
func (s *NamesStep) Hold(ctx context.Context, log *slog.Logger, ready func()) error {
	said := ""
	say := func(level slog.Level, line string, args ...any) {
		if line != said {
			log.Log(ctx, level, line, args...)
			said = line
		}
	}
	for first := true; ; first = false {
		if line, err := s.hold(ctx); err != nil {
			say(slog.LevelWarn, "names: "+err.Error())
		} else {
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

// hold looks once and puts right. It does without the lookup of the probe: every second for
// ever would be a load, and a dead answerer is not mended by another link.
func (s *NamesStep) hold(ctx context.Context) (string, error) {
	path, blocked, err := s.path(ctx)
	if err != nil {
		return "", err
	}
	link, there, err := s.Links.Find(ctx, s.Params.Link)
	if err != nil {
		return "", err
	}
	if blocked != "" {
		return blocked, nil
	}
	harm, err := s.wouldHarm(ctx, link.Index)
	if err != nil {
		return "", err
	}
	if harm != "" {
		if there && link.Ours {
			err = s.delete(ctx)
		}
		return harm, err
	}
	if there && link.Ours {
		d, err := s.compare(ctx, link)
		if err != nil || len(d) == 0 {
			return path.String(), err
		}
	}
	return path.String(), s.Apply(ctx, &installer.Record{})
}
