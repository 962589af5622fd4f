package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer"
)

// ServicesID is the id of the step that has helper and answerer running, by whatever manager.
const ServicesID installer.ID = "services"

// askWait bounds each question to a running service.
const askWait = 2 * time.Second

// ServicesStep has tree, helper and answerer running from the installed program, as units.
type ServicesStep struct {
	Program   string
	Systemctl Systemctl
	// Helper and Answerer ask the running services something; nil means they answer.
	Helper, Answerer func(context.Context) error
	// Runs says whether a process runs this very program; nil is /proc.
	Runs func(pid, program string) (bool, error)
}

// services are the units of the step. Sockets come before what they start; the tree is started
// and never restarted; names are a step of their own.
var services = [...]string{TreeService, AnswererSocket, AnswererService, HelperSocket, HelperService}

func (s *ServicesStep) ID() installer.ID             { return ServicesID }
func (s *ServicesStep) Describe() string             { return "start " + strings.Join(services[:], ", ") }
func (s *ServicesStep) Lifetime() installer.Lifetime { return installer.Boot }
func (s *ServicesStep) Required() bool               { return true }

// Probe asks systemd what is active, the kernel what program it is, and the services for an answer.
func (s *ServicesStep) Probe(ctx context.Context) (installer.Observation, error) {
	obs := installer.Observation{Loses: "no box can start and no name of a box resolves", Private: true}
	all, err := s.Systemctl.Show(ctx, services[:]...)
	if err != nil {
		return obs, err
	}
	for _, u := range services {
		if st := all[u]; st.Active != "active" {
			obs.State, obs.Detail, obs.Next = installer.Absent, fmt.Sprintf("%s is %s", u, st.Active), "systemctl status "+u
			return obs, nil
		}
	}
	older, err := s.older(all)
	if errors.Is(err, os.ErrPermission) {
		obs.State, obs.Detail, obs.Next = installer.Unknown, "only root can see what the services run", "sudo minhost verify"
		return obs, nil
	}
	if err != nil {
		return obs, err
	}
	if len(older) > 0 {
		obs.State, obs.Detail = installer.Drifted, strings.Join(older, " and ")+": an older program"
		return obs, nil
	}
	for _, q := range []struct {
		unit string
		ask  func(context.Context) error
	}{{HelperService, s.Helper}, {AnswererService, s.Answerer}} {
		if err := ask(ctx, q.ask); err != nil {
			obs.State, obs.Detail = installer.Drifted, fmt.Sprintf("%s is active but does not answer: %v", q.unit, err)
			obs.Next = "journalctl -b -u " + q.unit
			return obs, nil
		}
	}
	obs.State, obs.Detail, obs.Loses = installer.Satisfied, "units active; helper and answerer answer", ""
	return obs, nil
}

func ask(ctx context.Context, question func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	return question(ctx)
}

// older names the services that run another program than the installed one. The tree does not
// count: it is not restarted on an upgrade, since boxes would lose their verdicts.
func (s *ServicesStep) older(all map[string]Status) ([]string, error) {
	runs := s.Runs
	if runs == nil {
		runs = runsProgram
	}
	var older []string
	for _, u := range []string{AnswererService, HelperService} {
		ok, err := runs(all[u].MainPID, s.Program)
		if err != nil {
			return nil, fmt.Errorf("read program of %s: %w", u, err)
		}
		if !ok {
			older = append(older, u)
		}
	}
	return older, nil
}

func runsProgram(pid, program string) (bool, error) {
	running, err := os.Stat("/proc/" + pid + "/exe")
	if err != nil {
		return false, err
	}
	installed, err := os.Stat(program)
	if err != nil {
		return false, err
	}
	return os.SameFile(running, installed), nil
}

// Apply starts what is not active, and starts helper and answerer again when they are wrong.
func (s *ServicesStep) Apply(ctx context.Context, rec *installer.Record) error {
	if err := rec.Keep(struct{}{}); err != nil {
		return err
	}
	all, err := s.Systemctl.Show(ctx, services[:]...)
	if err != nil {
		return err
	}
	var down []string
	for _, u := range services {
		if all[u].Active != "active" {
			down = append(down, u)
		}
	}
	if len(down) > 0 {
		return s.words(ctx, s.Systemctl.Start(ctx, down...))
	}
	return s.words(ctx, s.Systemctl.Restart(ctx, AnswererService, HelperService))
}

// words adds to an error what the services said about themselves: systemctl only knows that they failed.
func (s *ServicesStep) words(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	all, showErr := s.Systemctl.Show(ctx, services[:]...)
	if showErr != nil {
		return err
	}
	for _, u := range services {
		if st := all[u]; st.Text != "" && st.Active != "active" {
			err = fmt.Errorf("%w; %s: %s", err, u, st.Text)
		}
	}
	return err
}

// Undo stops everything but the tree, which only goes with its unit file (UnitsStep.Undo). Sockets
// first, or they would start their services again.
func (s *ServicesStep) Undo(ctx context.Context, _ installer.Record) error {
	stop := []string{NamesService, HelperSocket, HelperService, AnswererSocket, AnswererService}
	all, err := s.Systemctl.Show(ctx, stop...)
	if err != nil {
		return err
	}
	stop = slices.DeleteFunc(stop, func(u string) bool { return all[u].Load != "loaded" || all[u].Active == "inactive" })
	return s.Systemctl.Stop(ctx, stop...)
}
