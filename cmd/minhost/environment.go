package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/user"

	"github.com/gominimal/minhost/verify"
)

// environment is everything a verb takes from the process that it runs in. Tests make their own.
type environment struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Socket is the helper's; the hidden flag --socket replaces it.
	Socket string
	// Log takes one line per change that a verb makes on the host.
	Log *slog.Logger
	// Level is the least that Log shows: warnings, and everything in a role of the service manager.
	Level *slog.LevelVar
	// EUID is the effective user id of the caller.
	EUID int
	// For is the account that finalize-install makes an operator; root until a flag says otherwise.
	For account
	// Getenv reads one variable of the caller's environment.
	Getenv func(string) string
	// LookupUser and LookupUserID ask the account database of the host.
	LookupUser, LookupUserID func(string) (*user.User, error)
	// Platform is what differs between operating systems.
	Platform platform
	// Dial connects to the helper.
	Dial dialer
	// Resolves says whether programs of this host resolve a name.
	Resolves func(context.Context, string) bool
	// Open shows a URL in the caller's browser.
	Open func(context.Context, string) error
	// Observe makes the checks of verify that need neither root nor the helper.
	Observe func(context.Context) []verify.Row
}

// production is the environment of the real program: the only place with defaults.
func production() *environment {
	p := newPlatform()
	if p.Observe == nil {
		p.Observe = verify.Observe
	}
	level := &slog.LevelVar{}
	level.Set(slog.LevelWarn)
	return &environment{
		Stdin:    os.Stdin,
		Stdout:   os.Stdout,
		Stderr:   os.Stderr,
		Socket:   p.Socket,
		Log:      slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
		Level:    level,
		EUID:     os.Geteuid(),
		Getenv:   os.Getenv,
		Platform: p,
		Dial:     dialHelper,
		Observe:  p.Observe,
		Resolves: resolves,
		Open:     openWith(p.Openers),

		LookupUser:   user.Lookup,
		LookupUserID: user.LookupId,
	}
}
