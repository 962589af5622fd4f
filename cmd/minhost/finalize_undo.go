package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/api"
)

// finalizeUndo takes everything back. It refuses while boxes live, unless forced.
func (env *environment) finalizeUndo(ctx context.Context, f finalizeFlags) error {
	if f.show || f.json || f.script {
		return env.showUndo(f)
	}
	if !f.yes && !f.apply {
		if err := env.confirm("take back everything that finalize-install did?"); err != nil {
			return err
		}
	}
	if env.EUID != 0 {
		return env.undoElevated(ctx, f)
	}
	live, err := env.liveBoxes(ctx)
	if err != nil {
		return err
	}
	if len(live) > 0 && !f.force {
		return hinted{fmt.Errorf("boxes are live: %s", strings.Join(live, ", ")), "end them, or: minhost finalize-install --undo --force"}
	}
	if f.force {
		if err := env.Platform.EndBoxes(ctx, env); err != nil {
			return err
		}
	}
	if err := env.undo(ctx); err != nil {
		return err
	}
	fmt.Fprintln(env.Stdout, "everything is as it was before finalize-install.")
	return nil
}

// undoAsk bounds the question of undo: a helper that hangs must not keep an admin from undoing.
const undoAsk = 5 * time.Second

// liveBoxes names the attached boxes. Boxes outlive a helper: where none answers their leaves tell.
func (env *environment) liveBoxes(ctx context.Context) ([]string, error) {
	bounded, cancel := context.WithTimeout(ctx, undoAsk)
	defer cancel()
	list, err := ask(bounded, env, func(ctx context.Context, c helperClient) (api.ListOut, error) { return c.List(ctx) })
	if err != nil {
		env.Log.Debug("no helper to ask for boxes", "cause", err)
		leaves, err := env.Platform.LiveLeaves()
		for i, leaf := range leaves {
			leaves[i] = "leaf " + api.Text(leaf)
		}
		return leaves, err
	}
	var live []string
	for _, l := range list.Leases {
		if l.State == api.LeaseStateAttached || l.State == api.LeaseStateAttaching {
			name := l.Name
			if name == "" {
				name = l.Lease
			}
			live = append(live, fmt.Sprintf("%s (uid %d, %d processes)", api.Text(name), l.UID, l.Processes))
		}
	}
	return live, nil
}

// awaitNoBoxes waits for the helper to take the leases of killed boxes away, the ordinary way: so names,
// verdicts and addresses go too.
func (env *environment) awaitNoBoxes(ctx context.Context) error {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		live, err := env.liveBoxes(ctx)
		if err != nil || len(live) == 0 {
			return err
		}
	}
	return hinted{errors.New("boxes were killed, but the helper still lists them"), "minhost ls"}
}

// undoElevated runs the installed program as root: it is root's own and nobody else can write it. Where an
// undo before this one removed it, and left something, root runs a copy of this program.
func (env *environment) undoElevated(ctx context.Context, f finalizeFlags) error {
	files, err := env.Platform.Files()
	if err != nil {
		return err
	}
	args := []string{"--undo", "--apply"}
	if f.force {
		args = append(args, "--force")
	}
	if _, err := files.Lstat(env.Platform.Program); errors.Is(err, fs.ErrNotExist) {
		script, err := env.script(installer.Plan{}, args...)
		if err != nil {
			return err
		}
		return env.elevate(ctx, script)
	}
	return env.elevate(ctx, "exec "+installer.Quote(env.Platform.Program)+" finalize-install "+strings.Join(args, " ")+"\n")
}

// showUndo says what undo is made of: the journal is root's.
func (env *environment) showUndo(f finalizeFlags) error {
	if f.json {
		return exitError{statusUsage, errors.New("--undo has no --json: what it takes back is in root's journal")}
	}
	const what = "# takes back, last step first, what the journal says was done\n"
	if f.script {
		fmt.Fprintf(env.Stdout, "#!/bin/sh\n%sset -eu\nexec %s finalize-install --undo --apply\n", what, env.Platform.Program)
		return nil
	}
	fmt.Fprintf(env.Stdout, "%s%s finalize-install --undo --yes\n", what, env.Platform.Program)
	return nil
}
