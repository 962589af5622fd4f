//go:build darwin || fakedarwin

package main

import (
	"context"

	"github.com/gominimal/minhost/darwin"
	"github.com/gominimal/minhost/installer/helper"
	answers "github.com/gominimal/minhost/resolverd/report"
)

// macHear gives the helper what the answerer reports, until the context ends. Datagrams carry no credentials
// on a Mac, so the socket is the answerer's user's. Whose a lookup is nobody knows: mDNSResponder asks for
// all. There is no view of boxes, and so no refused name.
func macHear(ctx context.Context, env *environment, l darwin.Layout, h *helper.Helper) {
	err := func() error {
		uid, err := macUID(env, darwin.AnswererUser)
		if err != nil {
			return err
		}
		r, err := answers.ListenFrom(l.Reports, uid)
		if err != nil {
			return err
		}
		return r.Run(ctx, answers.Handler{
			Lookup:   func(x answers.Lookup) { h.LookedUp(looked(x)) },
			Counters: func(c answers.Counters) { h.Answered(counted(c)) },
			Bad:      badReport(env.Log),
		})
	}()
	if err != nil {
		env.Log.Error("what the answerer answers is not told", "cause", err)
	}
}
