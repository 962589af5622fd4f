// Package label has the step that gives minhost's files the SELinux labels that the host's policy wants of
// their paths. A file that was made elsewhere and moved keeps its label, and systemd then cannot execute it
// after a reboot; files written in place have the label of their folder, which the policy may want otherwise.
//
// It loads no policy, changes no boolean and knows no label by name: restorecon does, and where there is no
// SELinux the step has nothing to do.
package label

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/linux/systemd"
)

// ID of the step.
const ID installer.ID = "labels"

const (
	// selinuxfs is mounted where the kernel has SELinux and a policy is loaded.
	selinuxfs   = "/sys/fs/selinux/enforce"
	callTimeout = 30 * time.Second
)

// Step restores the labels of some paths. It comes after the steps that write them.
type Step struct {
	Env   systemd.Env
	Run   host.Runner
	Paths []string // absolute; what is not there is passed over
}

var _ installer.Step = Step{}

// ID implements installer.Step.
func (Step) ID() installer.ID { return ID }

// Describe implements installer.Step.
func (s Step) Describe() string {
	return "give " + strings.Join(s.Paths, ", ") + " their SELinux labels"
}

// Lifetime implements installer.Step.
func (Step) Lifetime() installer.Lifetime { return installer.Persistent }

// Required implements installer.Step.
func (Step) Required() bool { return false }

// Probe asks restorecon what it would change.
func (s Step) Probe(ctx context.Context) (installer.Observation, error) {
	obs := installer.Observation{State: installer.Satisfied, Loses: "systemd may be refused to start minhost after a reboot"}
	program, there := s.program()
	switch {
	case !there:
		obs.Detail, obs.Loses = "no SELinux on this host", ""
		return obs, nil
	case program == "":
		obs.State, obs.Detail = installer.Blocked, "SELinux is on and there is no restorecon (package policycoreutils)"
		return obs, nil
	}
	wrong, err := s.call(ctx, program, true, "-n", "-v")
	if err != nil {
		return obs, err
	}
	if wrong != "" {
		obs.State, obs.Detail = installer.Drifted, strings.ReplaceAll(wrong, "\n", "; ")
		return obs, nil
	}
	obs.Detail, obs.Loses = "the labels are those of the policy", ""
	return obs, nil
}

// program is restorecon; there says whether SELinux is.
func (s Step) program() (path string, there bool) {
	return systemd.Find(s.Env, "restorecon"), s.Env.Exists(selinuxfs)
}

// call runs restorecon over the paths that are there; -F resets the user part of a label too.
func (s Step) call(ctx context.Context, program string, reads bool, flags ...string) (string, error) {
	args := append(flags, "-F", "--")
	named := len(args)
	for _, p := range s.Paths {
		if s.Env.Exists(p) {
			args = append(args, p)
		}
	}
	if len(args) == named {
		return "", nil
	}
	r, err := s.Run.Run(ctx, host.Command{Path: program, Args: args, Timeout: callTimeout, Reads: reads})
	if err != nil {
		return "", fmt.Errorf("labels: %w", err)
	}
	return strings.TrimSpace(string(r.Stdout)), nil
}

// Apply restores.
func (s Step) Apply(ctx context.Context, rec *installer.Record) error {
	if err := rec.Keep(struct{}{}); err != nil {
		return err
	}
	program, _ := s.program()
	_, err := s.call(ctx, program, false)
	return err
}

// Undo has nothing to undo: the files go, and their labels with them.
func (Step) Undo(context.Context, installer.Record) error { return nil }
