package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os/user"
	"strings"
	"testing"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/host"
	"github.com/gominimal/minhost/installer/host/hosttest"
	"github.com/gominimal/minhost/verify"
)

// fakeHelper answers from fields and keeps what it was asked.
type fakeHelper struct {
	list    api.ListOut
	status  api.StatusOut
	checks  api.VerifyOut
	explain api.ExplainOut
	events  []api.Event
	err     error

	explained api.ExplainIn
	watched   api.WatchIn
	closed    bool
}

func (f *fakeHelper) List(context.Context) (api.ListOut, error)     { return f.list, f.err }
func (f *fakeHelper) Status(context.Context) (api.StatusOut, error) { return f.status, f.err }
func (f *fakeHelper) Repair(context.Context) (api.RepairOut, error) {
	return api.RepairOut{}, f.err
}

func (f *fakeHelper) Verify(context.Context) (api.VerifyOut, error) { return f.checks, f.err }
func (f *fakeHelper) Close() error                                  { f.closed = true; return nil }

func (f *fakeHelper) Explain(_ context.Context, in api.ExplainIn) (api.ExplainOut, error) {
	f.explained = in
	return f.explain, f.err
}

func (f *fakeHelper) Watch(_ context.Context, in api.WatchIn, each func(api.Event) error) error {
	f.watched = in
	for _, e := range f.events {
		if err := each(e); err != nil {
			return err
		}
	}
	return f.err
}

// lab is an environment on fakes with what it printed.
type lab struct {
	env         *environment
	out, errOut bytes.Buffer
	root        string // stands for "/"
}

func newLab(t *testing.T, helper *fakeHelper) *lab {
	t.Helper()
	l := &lab{root: hosttest.Root(t)}
	p := unsupported("test")
	p.Operators = "/var/lib/minhost/operators"
	p.Files = func() (host.FS, error) { return hosttest.OpenDisk(t, l.root, nil), nil }
	p.Plan = func(context.Context, *environment) (installer.Plan, error) { return installer.Plan{}, nil }
	l.env = &environment{
		Stdin: strings.NewReader(""), Stdout: &l.out, Stderr: &l.errOut,
		Socket: "/run/test.sock", Log: slog.New(slog.DiscardHandler),
		Getenv: func(string) string { return "" }, Platform: p,
		Dial: func(_ context.Context, socket string) (helperClient, error) {
			if helper == nil {
				return nil, hinted{io.ErrUnexpectedEOF, "start " + socket}
			}
			return helper, nil
		},
		Observe: func(context.Context) []verify.Row { return nil },
		LookupUser: func(name string) (*user.User, error) {
			return accounts(name, func(u user.User) string { return u.Username })
		},
		LookupUserID: func(uid string) (*user.User, error) {
			return accounts(uid, func(u user.User) string { return u.Uid })
		},
	}
	return l
}

func accounts(want string, key func(user.User) string) (*user.User, error) {
	for _, u := range []user.User{{Uid: "1000", Username: "ana"}, {Uid: "1001", Username: "ben"}} {
		if key(u) == want {
			return &u, nil
		}
	}
	return nil, user.UnknownUserIdError(0)
}

// run runs one command line and returns its status.
func (l *lab) run(t *testing.T, args ...string) int {
	t.Helper()
	l.out.Reset()
	l.errOut.Reset()
	return run(t.Context(), l.env, args)
}
