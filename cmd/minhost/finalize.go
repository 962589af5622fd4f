package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gominimal/minhost/installer"
)

// finalizeFlags are the flags of finalize-install.
type finalizeFlags struct {
	show, json, script, yes, undo, force, apply bool
	operator, expect                            string
	only                                        []string
}

func newFinalizeCommand(env *environment) *cobra.Command {
	var f finalizeFlags
	cmd := &cobra.Command{
		Use:   "finalize-install",
		Short: "Prepare this host for boxes, once (asks, and becomes root, once)",
		Long: "Prepare this host for boxes: show the plan, ask once, become root once, apply, look again.\n" +
			"Applied again it changes nothing. --undo takes everything back.\n\n" +
			"Exit status 0 only when the host is finished; with --show 0; with --json 0 finished, 1 not.",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return env.finalize(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.show, "show", false, "show the plan and change nothing")
	flags.BoolVar(&f.json, "json", false, "print the plan as JSON (schema minhost/v1/plan) and change nothing")
	flags.BoolVar(&f.script, "script", false, "with --show: print a POSIX sh script that does it, for an admin to read and run")
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	flags.BoolVar(&f.undo, "undo", false, "take everything back")
	flags.BoolVar(&f.force, "force", false, "with --undo: end live boxes first")
	flags.StringVar(&f.operator, "operator", "", "account whose runners may call the helper (default: you)")
	flags.StringSliceVar(&f.only, "only", nil, "only these steps (ids of the plan)")
	flags.BoolVar(&f.apply, "apply", false, "apply without asking, as root")
	flags.StringVar(&f.expect, "expect", "", "refuse unless the plan has this digest")
	for _, hidden := range []string{"apply", "expect"} {
		_ = flags.MarkHidden(hidden) // fails only for a flag that does not exist
	}
	cmd.MarkFlagsMutuallyExclusive("show", "apply")
	cmd.MarkFlagsMutuallyExclusive("json", "script")
	return cmd
}

func (env *environment) finalize(ctx context.Context, f finalizeFlags) (err error) {
	if env.For, err = env.operator(f.operator); err != nil {
		return err
	}
	switch {
	case f.script && !f.show:
		return exitError{statusUsage, hinted{errors.New("--script goes with --show"), "minhost finalize-install --show --script"}}
	case f.force && !f.undo:
		return exitError{statusUsage, hinted{errors.New("--force goes with --undo"), "minhost finalize-install --undo --force"}}
	case f.undo:
		return env.finalizeUndo(ctx, f)
	case f.apply:
		return env.finalizeApply(ctx, f)
	}
	plan, err := env.Platform.Plan(ctx, env)
	if err != nil {
		return err
	}
	switch {
	case f.json:
		return env.showJSON(plan, f.show)
	case f.script:
		return env.showScript(plan, f)
	}
	fmt.Fprint(env.Stdout, plan.Table())
	if f.show {
		return nil
	}
	if plan.Settled() && f.only == nil {
		fmt.Fprintln(env.Stdout, "\nnothing to do.")
		return env.finish(ctx)
	}
	if !f.yes {
		if err := env.confirm("\napply this plan?"); err != nil {
			return err
		}
	}
	if env.EUID == 0 {
		return env.finalizeApply(ctx, f)
	}
	script, err := env.script(plan, env.scriptArgs(f)...)
	if err != nil {
		return err
	}
	if err := env.elevate(ctx, script); err != nil {
		return err
	}
	return env.finish(ctx)
}

func (env *environment) showJSON(plan installer.Plan, always bool) error {
	b, err := plan.JSON()
	if err != nil {
		return err
	}
	if _, err := env.Stdout.Write(b); err != nil {
		return err
	}
	if always || plan.ExitStatus() == 0 {
		return nil
	}
	return exitError{code: plan.ExitStatus()}
}

func (env *environment) showScript(plan installer.Plan, f finalizeFlags) error {
	script, err := env.script(plan, env.scriptArgs(f)...)
	if err != nil {
		return err
	}
	fmt.Fprint(env.Stdout, script)
	fmt.Fprint(env.Stderr, plan.Table())
	return nil
}

// scriptArgs carries over what the plan was made with: as root the caller is another.
func (env *environment) scriptArgs(f finalizeFlags) []string {
	args := []string{"--operator", strconv.Itoa(env.For.UID)}
	if f.only != nil {
		args = append(args, "--only", strings.Join(f.only, ","))
	}
	return args
}

// finalizeApply is the half that root does.
func (env *environment) finalizeApply(ctx context.Context, f finalizeFlags) error {
	if env.EUID != 0 {
		return hinted{errors.New("--apply is for root"), "minhost finalize-install"}
	}
	var only []installer.ID
	for _, id := range f.only {
		only = append(only, installer.ID(id))
	}
	report, err := env.apply(ctx, installer.Options{Only: only}, f.expect)
	for _, r := range report.Results {
		if r.Deed == installer.Applied {
			fmt.Fprintf(env.Stdout, "done: %s\n", r.Describe)
		}
	}
	if err != nil {
		return err
	}
	return env.finish(ctx)
}

// finish looks again, as somebody who was not there.
func (env *environment) finish(ctx context.Context) error {
	report := env.verify(ctx)
	fmt.Fprintln(env.Stdout)
	if err := report.WriteText(env.Stdout); err != nil {
		return err
	}
	if !report.Ready() {
		return exitError{code: statusNo}
	}
	return nil
}

// confirm asks once. Without a terminal nobody can answer.
func (env *environment) confirm(question string) error {
	if !env.onTerminal() {
		return hinted{errors.New("there is no terminal to ask on"), "minhost finalize-install --yes"}
	}
	fmt.Fprintf(env.Stdout, "%s [y/N] ", question)
	line, err := bufio.NewReader(env.Stdin).ReadString('\n')
	if err == nil && strings.EqualFold(strings.TrimSpace(line), "y") {
		return nil
	}
	return exitError{statusNo, errors.New("nothing was changed")}
}
