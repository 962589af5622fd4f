// Package apparmor has the step that lets accounts without privileges make user namespaces through minhost,
// where AppArmor keeps them from every program that has no profile (Ubuntu 23.10 and later,
// kernel.apparmor_restrict_unprivileged_userns): strict boxes and boxes of mode none need one. The profile
// confines nothing; it names the installed program and allows that.
//
// It changes no sysctl and no other profile, and where nothing is restricted it has nothing to do. Whether
// a profile helps is tried, as an account without privileges, not read from files.
package apparmor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/filestep"
)

// ID of the step.
const ID installer.ID = "apparmor"

// Paths. The profile is read again at each boot by apparmor.service.
const (
	Restriction = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
	Profile     = "/etc/apparmor.d/minhost"
	loaded      = "/sys/kernel/security/apparmor/profiles" // a line each: NAME (MODE)
	name        = "minhost"
	callTimeout = 30 * time.Second
	marker      = "# minhost: written by finalize-install; removed by finalize-install --undo\n"
)

// content attaches to what is executed from that path, whoever does it. "userns," needs the rules of
// AppArmor 4.0, which every host with the restriction has.
func content(program string) []byte {
	return fmt.Appendf(nil, "%sabi <abi/4.0>,\ninclude <tunables/global>\n\nprofile %s %s flags=(unconfined) {\n  userns,\n\n  include if exists <local/%s>\n}\n",
		marker, name, program, name)
}

// Step writes and loads the profile. It comes after the program is there.
type Step struct {
	*filestep.Step
	FS  host.FS
	Run host.Runner
	// Parser is apparmor_parser, "" where there is none.
	Parser string
	// Try makes a user namespace with rights in it, as an account without privileges, by the installed program.
	Try func(context.Context) error
}

var _ installer.Step = Step{}

// New returns the step for the installed program.
func New(fsys host.FS, run host.Runner, parser, program string, try func(context.Context) error) Step {
	return Step{
		Step: filestep.New(fsys, filestep.Spec{
			ID: ID, Describe: "let boxes be strict under AppArmor: write and load " + Profile, Optional: true,
			Loses: "boxes are cooperative, not strict, and there are none of mode none: AppArmor keeps user namespaces from programs without a profile",
			Path:  Profile, Content: content(program), Attr: host.Attr{Mode: 0o644}, Marker: marker,
		}),
		FS: fsys, Run: run, Parser: parser, Try: try,
	}
}

// Probe looks whether anything is restricted, and then tries.
func (s Step) Probe(ctx context.Context) (installer.Observation, error) {
	switch text, err := s.FS.ReadFile(Restriction); {
	case errors.Is(err, fs.ErrNotExist), err == nil && strings.TrimSpace(string(text)) == "0":
		return installer.Observation{State: installer.Satisfied, Detail: "AppArmor keeps user namespaces from no program"}, nil
	case err != nil:
		return installer.Observation{}, err
	}
	obs, err := s.Step.Probe(ctx)
	if err != nil {
		return obs, err
	}
	tried := s.Try(ctx)
	switch {
	case obs.State == installer.Satisfied && tried != nil:
		obs.State, obs.Detail = installer.Drifted, fmt.Sprintf("%s is as wanted, and has no effect: %v", Profile, tried)
	case obs.State == installer.Absent && tried == nil:
		// Somebody else's profile, or a parent's, does it.
		obs.State, obs.Detail = installer.Satisfied, "an account without privileges gets user namespaces"
	case obs.State == installer.Absent:
		obs.Detail += ", and an account without privileges gets no user namespace: " + tried.Error()
	}
	if (obs.State == installer.Absent || obs.State == installer.Drifted) && s.Parser == "" {
		obs.State, obs.Detail = installer.Blocked, "AppArmor keeps user namespaces from programs without a profile, and there is no apparmor_parser (package apparmor)"
	}
	if obs.State == installer.Satisfied {
		obs.Loses = ""
	}
	return obs, nil
}

// Apply writes the profile and loads it, in place of one that is loaded.
func (s Step) Apply(ctx context.Context, rec *installer.Record) error {
	if err := s.Step.Apply(ctx, rec); err != nil {
		return err
	}
	return s.parse(ctx, "--replace")
}

// Undo unloads the profile, while its file still says which, and removes the file.
func (s Step) Undo(ctx context.Context, rec installer.Record) error {
	var unload error
	all, err := s.FS.ReadFile(loaded)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		unload = err
	case bytes.Contains(append([]byte("\n"), all...), []byte("\n"+name+" (")):
		unload = s.parse(ctx, "--remove")
	}
	return errors.Join(unload, s.Step.Undo(ctx, rec))
}

func (s Step) parse(ctx context.Context, flag string) error {
	_, err := s.Run.Run(ctx, host.Command{Path: s.Parser, Args: []string{flag, Profile}, Timeout: callTimeout})
	if err != nil {
		return fmt.Errorf("profile %s: %w", Profile, err)
	}
	return nil
}
