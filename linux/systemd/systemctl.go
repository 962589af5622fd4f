package systemd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer/host"
)

// callTimeout bounds one systemctl call. Starting is bounded by the units themselves.
const callTimeout = 90 * time.Second

// Systemctl is the edge to the running manager.
type Systemctl struct {
	Run  host.Runner
	Path string // absolute
}

// Find returns the absolute path of a program of the system, or "".
func Find(env Env, program string) string {
	for _, dir := range []string{"/usr/bin/", "/bin/", "/usr/sbin/", "/sbin/"} {
		if env.Exists(dir + program) {
			return dir + program
		}
	}
	return ""
}

func (s Systemctl) call(ctx context.Context, args ...string) ([]byte, error) {
	r, err := s.Run.Run(ctx, host.Command{
		Path:    s.Path,
		Args:    append([]string{"--no-ask-password"}, args...),
		Timeout: callTimeout,
		Reads:   args[0] == "show",
	})
	return r.Stdout, err
}

func (s Systemctl) verb(ctx context.Context, verb string, units []string) error {
	if len(units) == 0 {
		return nil
	}
	_, err := s.call(ctx, append([]string{verb, "--"}, units...)...)
	return err
}

// Reload makes the manager read its unit files again. It must come before Enable and Start: they
// act on what the manager has read.
func (s Systemctl) Reload(ctx context.Context) error {
	_, err := s.call(ctx, "daemon-reload")
	return err
}

// Enable makes the links that [Install] names. It starts nothing.
func (s Systemctl) Enable(ctx context.Context, units ...string) error {
	return s.verb(ctx, "enable", units)
}

// Disable removes those links. It stops nothing.
func (s Systemctl) Disable(ctx context.Context, units ...string) error {
	return s.verb(ctx, "disable", units)
}

// Start returns when all are started: for Type=notify when they said READY=1.
func (s Systemctl) Start(ctx context.Context, units ...string) error {
	return s.verb(ctx, "start", units)
}

// Restart starts those again that run.
func (s Systemctl) Restart(ctx context.Context, units ...string) error {
	return s.verb(ctx, "restart", units)
}

// Stop ends them. Not for the tree unit, which refuses it while its file exists.
func (s Systemctl) Stop(ctx context.Context, units ...string) error {
	return s.verb(ctx, "stop", units)
}

// Service is one unit, for a step of another package.
type Service struct {
	Systemctl Systemctl
	Name      string
}

// Active tells whether it runs.
func (s Service) Active(ctx context.Context) (bool, error) {
	all, err := s.Systemctl.Show(ctx, s.Name)
	return all[s.Name].Active == "active", err
}

// Start starts it.
func (s Service) Start(ctx context.Context) error { return s.Systemctl.Start(ctx, s.Name) }

// Stop stops it; nil when there is no such unit.
func (s Service) Stop(ctx context.Context) error {
	all, err := s.Systemctl.Show(ctx, s.Name)
	if err != nil || all[s.Name].Load != "loaded" || all[s.Name].Active == "inactive" {
		return err
	}
	return s.Systemctl.Stop(ctx, s.Name)
}

// Status is what the manager knows of one unit.
type Status struct {
	Active  string // ActiveState: active, inactive, failed, activating, ...
	File    string // UnitFileState: enabled, disabled, masked, "" when there is no file
	Load    string // LoadState: loaded, not-found, masked, ...
	Stale   bool   // the file changed since the manager read it
	MainPID string // "0" when there is none
	Result  string // success, exit-code, ...
	Text    string // what the service last said about itself (sd_notify STATUS=)
}

// Show asks for several units at once. Properties are an interface with a promise of stability;
// the text of status is not.
func (s Systemctl) Show(ctx context.Context, units ...string) (map[string]Status, error) {
	out, err := s.call(ctx, append([]string{
		"show", "--property=Id,ActiveState,UnitFileState,LoadState,NeedDaemonReload,MainPID,Result,StatusText", "--",
	}, units...)...)
	if err != nil {
		return nil, err
	}
	all := parseShow(string(out))
	for _, u := range units {
		if _, ok := all[u]; !ok {
			return nil, fmt.Errorf("systemctl show %s: not in its answer", u)
		}
	}
	return all, nil
}

// parseShow reads blocks of KEY=VALUE lines, one block a unit, empty lines between them.
func parseShow(text string) map[string]Status {
	all := map[string]Status{}
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		var id string
		var st Status
		for line := range strings.Lines(block) {
			key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), "=")
			switch key {
			case "Id":
				id = value
			case "ActiveState":
				st.Active = value
			case "UnitFileState":
				st.File = value
			case "LoadState":
				st.Load = value
			case "NeedDaemonReload":
				st.Stale = value == "yes"
			case "MainPID":
				st.MainPID = value
			case "Result":
				st.Result = value
			case "StatusText":
				st.Text = value
			}
		}
		if id != "" {
			all[id] = st
		}
	}
	return all
}
