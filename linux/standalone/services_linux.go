package standalone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
)

// ServicesID is the id of the step that has helper and answerer running, by whatever manager.
const ServicesID installer.ID = "services"

// probeWait bounds each of the two questions of the probe.
const probeWait = 2 * time.Second

// ServicesStep has the supervisor, helper and answerer running from the installed program.
type ServicesStep struct {
	Config Config
	// Helper and Answerer ask the running services something; nil means they answer.
	Helper, Answerer func(context.Context) error
	// Clean removes what the services themselves wrote, once they have ended; nil means nothing.
	Clean func() error
	Gate  host.Gate
}

func (s *ServicesStep) ID() installer.ID             { return ServicesID }
func (s *ServicesStep) Describe() string             { return "start helper and answerer under minhost supervise" }
func (s *ServicesStep) Lifetime() installer.Lifetime { return installer.Boot }
func (s *ServicesStep) Required() bool               { return true }

const servicesLose = "no box can start and no name of a box resolves"

// Probe looks at the processes, not at notes about them: who holds the lock, what program that
// process runs, and whether both services answer. Only root can.
func (s *ServicesStep) Probe(ctx context.Context) (installer.Observation, error) {
	obs := installer.Observation{Loses: servicesLose, Private: true}
	pid, ok, err := s.settled(ctx)
	switch {
	case errors.Is(err, fs.ErrPermission):
		obs.State, obs.Detail, obs.Next = installer.Unknown, "only root can see the supervisor", "sudo minhost verify"
		return obs, nil
	case err != nil:
		return obs, err
	case !ok:
		obs.State, obs.Detail = installer.Absent, "no supervisor runs"
		return obs, nil
	}
	if detail, err := s.outdated(pid); err != nil || detail != "" {
		obs.State, obs.Detail = installer.Drifted, detail
		return obs, err
	}
	for _, q := range []struct {
		who string
		ask func(context.Context) error
	}{{"helper", s.Helper}, {"answerer", s.Answerer}} {
		if err := ask(ctx, q.ask); err != nil {
			obs.State, obs.Detail = installer.Drifted, fmt.Sprintf("supervisor %d runs, but the %s does not answer: %v", pid, q.who, err)
			obs.Next = "tail " + s.Config.Log
			return obs, nil
		}
	}
	obs.State, obs.Loses = installer.Satisfied, ""
	obs.Detail = fmt.Sprintf("supervisor %d runs; helper and answerer answer", pid)
	return obs, nil
}

// settled is Running, once it is settled: a process that was killed keeps its locks for the moment
// in which its last threads end, and has no program any more.
func (s *ServicesStep) settled(ctx context.Context) (pid int, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	for {
		pid, ok, err = Running(s.Config.Lock)
		if err != nil || !ok || ctx.Err() != nil {
			return pid, ok, err
		}
		if _, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); !errors.Is(err, fs.ErrNotExist) {
			return pid, ok, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func ask(ctx context.Context, question func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	return question(ctx)
}

// outdated compares what the supervisor runs with the installed program: the same name can be
// another file since the last upgrade.
func (s *ServicesStep) outdated(pid int) (string, error) {
	exe := fmt.Sprintf("/proc/%d/exe", pid)
	running, err := os.Stat(exe)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("supervisor %d holds the lock and has no program: it is ending, or in another pid namespace", pid), nil
	}
	if err != nil {
		return "", fmt.Errorf("read program of supervisor %d: %w", pid, err)
	}
	installed, err := os.Stat(s.Config.Program)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("supervisor %d runs a program that is gone from %s", pid, s.Config.Program), nil
	}
	if err != nil {
		return "", err
	}
	name, err := os.Readlink(exe)
	if err != nil {
		return "", err
	}
	switch same := os.SameFile(running, installed); {
	case same:
		return "", nil
	// The kernel adds this to the name of a file that was replaced or removed.
	case strings.TrimSuffix(name, " (deleted)") == s.Config.Program:
		return fmt.Sprintf("supervisor %d runs an older program", pid), nil
	default:
		return fmt.Sprintf("supervisor %d runs another program (%s)", pid, name), nil
	}
}

// Apply starts the supervisor; one that is there but wrong is stopped first. Boxes live on.
func (s *ServicesStep) Apply(ctx context.Context, rec *installer.Record) error {
	if err := rec.Keep(struct{}{}); err != nil {
		return err
	}
	if _, ok, err := Running(s.Config.Lock); err != nil {
		return err
	} else if ok {
		if err := s.Gate.Pass("stop supervisor"); err != nil {
			return err
		}
		if err := Stop(ctx, s.Config); err != nil {
			return err
		}
	}
	if err := s.Gate.Pass("start supervisor"); err != nil {
		return err
	}
	_, err := Start(ctx, s.Config)
	return err
}

// Undo stops all three and removes socket, lock and logs, and the run folder if nothing else is in it.
func (s *ServicesStep) Undo(ctx context.Context, _ installer.Record) error {
	if err := s.Gate.Pass("stop supervisor"); err != nil {
		return err
	}
	if err := Stop(ctx, s.Config); err != nil {
		return err
	}
	var errs []error
	if s.Clean != nil {
		errs = append(errs, s.Clean())
	}
	for _, path := range []string{s.Config.Log, s.Config.Log + ".1", s.Config.Lock, s.Config.Run} {
		if err := s.Gate.Pass("remove " + path); err != nil {
			return err
		}
		err := os.Remove(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && path != s.Config.Run {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
