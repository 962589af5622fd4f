package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/linux/nft"
)

// neighbours names the other firewalls that packets of boxes pass: what they refuse stays refused, whatever a
// box may. It is no fault of the host, so only one that drops by default is worth a warning.
func (c groundChecker) neighbours(ctx context.Context) api.Check {
	check := api.Check{Name: "other firewalls", State: api.CheckStateOK, Detail: "none filters what boxes send or receive"}
	var all []nft.Neighbour
	tree, err := c.ground.Tree()
	if err == nil {
		defer tree.Close()
		var table *nft.Table
		if table, err = c.ground.TableOf(tree); err == nil {
			all, err = table.Neighbours(ctx)
			err = errors.Join(err, table.Close())
		}
	}
	if err != nil {
		check.State, check.Detail = api.CheckStateUnknown, api.Text(err.Error())
		return check
	}
	var names []string
	for _, n := range all {
		names = append(names, n.String())
	}
	if len(names) > 0 {
		check.Detail = api.Text("packets of boxes also pass " + strings.Join(names, "; "))
	}
	if slices.ContainsFunc(all, func(n nft.Neighbour) bool { return n.Drops }) {
		check.State = api.CheckStateWarning
		check.Loses, check.Next = "what a box may reach is refused there, unless a rule of that firewall lets it out", "nft list ruleset"
	}
	return check
}
