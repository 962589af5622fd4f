package main

import (
	"context"
	"fmt"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/api"
)

// heard fills in what only root can see by the word of a running helper: it is root, and it answers
// nobody but operators. What it does not vouch for stays Unknown. The digest of the plan is the same
// with and without, since these states are not part of it.
func (env *environment) heard(ctx context.Context, plan installer.Plan) installer.Plan {
	if env.EUID == 0 || !hidden(plan) {
		return plan
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c, err := env.Dial(ctx, env.Socket)
	if err != nil {
		return plan
	}
	defer c.Close()
	status, err := c.Status(ctx)
	if err != nil {
		return plan
	}
	word := map[string]string{}
	if env.For.UID == env.EUID {
		word["operator"] = fmt.Sprintf("the helper answers uid %d", env.EUID)
	}
	if status.Version == programVersion() {
		word["services"] = fmt.Sprintf("helper %d answers, of this version", status.PID)
	}
	if checks, err := c.Verify(ctx); err == nil {
		for _, check := range checks.Checks {
			if check.State == api.CheckStateOK {
				word[check.Name] = check.Detail
			}
		}
	}
	for i, r := range plan.Rows {
		if detail, ok := word[string(r.ID)]; ok && r.State == installer.Unknown {
			plan.Rows[i].State, plan.Rows[i].Detail, plan.Rows[i].Next = installer.Satisfied, api.Text(detail), ""
		}
	}
	return plan
}

// hidden says whether the plan has a state that this user cannot see.
func hidden(plan installer.Plan) bool {
	for _, r := range plan.Rows {
		if r.State == installer.Unknown {
			return true
		}
	}
	return false
}
