package launchd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer/host"
)

// launchctlPath is where every macOS has it.
const launchctlPath = "/bin/launchctl"

// Exit codes of launchctl. They are errno values and codes of launchd's own; what each means here was
// collected from real Macs.
const (
	codeNoProcess  = 3   // bootout of a label that is not loaded
	codeIO         = 5   // loaded already, still leaving, disabled, or a bad file: look further
	codeInProgress = 36  // bootout is on its way
	codeAlready    = 37  // loaded already, or still leaving
	codeNotFound   = 113 // print or kickstart of a label that is not loaded
	codeDisabled   = 119 // the label is disabled, which survives uninstall and reboot
	codeBadFile    = 122 // owner or mode of the plist
)

// Control is the edge to launchd.
type Control struct {
	Run   host.Runner
	Clock host.Clock
}

// target names a label in the domain of daemons.
func target(label string) string { return "system/" + label }

// call returns the exit status of launchctl; the error is one of running it.
func (c Control) call(ctx context.Context, reads bool, args ...string) (int, host.Result, error) {
	r, err := c.Run.Run(ctx, host.Command{Path: launchctlPath, Args: args, Reads: reads})
	var exit *host.ExitError
	if errors.As(err, &exit) && exit.Code > 0 {
		return exit.Code, r, nil
	}
	return 0, r, err
}

// failure is what the user reads of a code that stays.
func failure(verb, label string, code int, stderr []byte) error {
	said := strings.Join(strings.Fields(string(stderr)), " ")
	why, next := said, "launchctl error "+strconv.Itoa(code)
	switch {
	case code == codeDisabled || strings.Contains(said, "Service is disabled"):
		why, next = "the label is disabled", "launchctl print-disabled system; enable it: sudo launchctl enable "+target(label)
	case code == codeBadFile || strings.Contains(said, "bad ownership"):
		why, next = "launchd refuses owner or mode of the plist", "ls -l "+Dir
	case code == codeInProgress || code == codeAlready:
		why, next = "an older job of this label does not go away", "launchctl print "+target(label)
	case code == codeIO: // it is not disabled, and owner and mode are right: the step sees to both
		why = "an older job of this label does not go away, or launchd cannot read the plist (" + said + ")"
		next = "launchctl print " + target(label) + "; plutil -lint " + Dir + "/" + label + ".plist"
	case code == codeNoProcess || code == codeNotFound:
		why, next = "launchd has no such job", "launchctl print "+target(label)+"; load it: minhost finalize-install"
	}
	return fmt.Errorf("launchctl %s %s: code %d: %s; look: %s", verb, label, code, why, next)
}

// Status asks for one job. A label that is not loaded is no error (113, on some releases after a line
// "Bad request.").
func (c Control) Status(ctx context.Context, label string) (Status, error) {
	code, r, err := c.call(ctx, true, "print", target(label))
	switch {
	case err != nil:
		return Status{}, err
	case code == codeNotFound || code == codeNoProcess:
		return Status{}, nil
	case code != 0:
		return Status{}, failure("print", label, code, r.Stderr)
	}
	return parsePrint(r.Stdout), nil
}

// Disabled asks whether somebody disabled the label.
func (c Control) Disabled(ctx context.Context, label string) (bool, error) {
	code, r, err := c.call(ctx, true, "print-disabled", "system")
	if err == nil && code != 0 {
		err = failure("print-disabled", label, code, r.Stderr)
	}
	return parseDisabled(r.Stdout, label), err
}

// Enable takes a label out of the disabled ones. It is called for a disabled label only: for another it
// would leave an entry in launchd's database that nothing can take back.
func (c Control) Enable(ctx context.Context, label string) error {
	return c.must(ctx, label, "enable", target(label))
}

// Kick starts a loaded job again, and ends it first when it runs. Its sockets stay: what is asked
// meanwhile waits in them.
func (c Control) Kick(ctx context.Context, label string) error {
	return c.must(ctx, label, "kickstart", "-k", target(label))
}

func (c Control) must(ctx context.Context, label string, args ...string) error {
	code, r, err := c.call(ctx, false, args...)
	if err == nil && code != 0 {
		err = failure(args[0], label, code, r.Stderr)
	}
	return err
}

const (
	goneWait  = 30 * time.Second // for a label to be free after bootout
	goneEvery = 250 * time.Millisecond
	loadWait  = 15 * time.Second // for bootstrap to be taken
	loadEvery = 500 * time.Millisecond
)

// Out ends a job and waits until its label is free. Nothing loaded is no error.
func (c Control) Out(ctx context.Context, label string) error {
	s, err := c.Status(ctx, label)
	if err != nil || !s.Loaded {
		return err
	}
	code, r, err := c.call(ctx, false, "bootout", target(label))
	if err != nil {
		return err
	}
	switch code {
	case 0, codeNoProcess, codeNotFound, codeInProgress, codeIO:
	default:
		return failure("bootout", label, code, r.Stderr)
	}
	free := func(ctx context.Context) (bool, error) {
		s, err := c.Status(ctx, label)
		return err == nil && !s.Loaded, err
	}
	if err := c.poll(ctx, goneWait, goneEvery, free); err != nil {
		return fmt.Errorf("launchctl bootout %s: it is still there after %v: %w; look: launchctl print %s", label, goneWait, err, target(label))
	}
	return nil
}

// In loads a job from its file: enable where it is disabled, out with an older one, then bootstrap, tried
// again while the label is busy. Afterwards launchd knows the job; whether it works is another question.
func (c Control) In(ctx context.Context, label, file string) error {
	if off, err := c.Disabled(ctx, label); off || err != nil {
		if err := c.Enable(ctx, label); err != nil {
			return err
		}
	}
	if err := c.Out(ctx, label); err != nil {
		return err
	}
	var last error
	err := c.poll(ctx, loadWait, loadEvery, func(ctx context.Context) (bool, error) {
		code, r, err := c.call(ctx, false, "bootstrap", "system", file)
		if code == 0 || err != nil {
			return err == nil, err
		}
		last = failure("bootstrap", label, code, r.Stderr)
		switch {
		case code == codeIO || code == codeAlready || code == codeInProgress:
			return false, c.enableIfOff(ctx, label)
		case code == codeDisabled: // somebody was faster, or print-disabled has a layout we cannot read
			return false, c.Enable(ctx, label)
		}
		return false, last
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// enableIfOff: new releases answer 5 where older ones say 119.
func (c Control) enableIfOff(ctx context.Context, label string) error {
	off, err := c.Disabled(ctx, label)
	if err != nil || !off {
		return err
	}
	return c.Enable(ctx, label)
}

// errTime is the end of patience.
var errTime = errors.New("no change in time")

// poll asks until the answer is yes, an error, or the time is over.
func (c Control) poll(ctx context.Context, limit, every time.Duration, ask func(context.Context) (bool, error)) error {
	for end := c.Clock.Now().Add(limit); ; {
		if ok, err := ask(ctx); ok || err != nil {
			return err
		}
		if !c.Clock.Now().Before(end) {
			return errTime
		}
		if err := c.Clock.Sleep(ctx, every); err != nil {
			return err
		}
	}
}
