package main

import (
	"errors"
	"log/slog"
	"net/netip"

	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/installer/helper"
	"github.com/gominimal/minhost/installer/lease"
	"github.com/gominimal/minhost/linux"
	"github.com/gominimal/minhost/linux/cgroup"
	"github.com/gominimal/minhost/linux/localhost"
)

// rangePort asks the kernel about leased addresses, and guards those that are given where it can.
type rangePort struct{ homes *localhost.Homes }

// Free implements helper.Range. It guards first and looks then, so that nobody binds it in between. The
// guard ends with the lease.
func (r rangePort) Free(a netip.Addr) error {
	if r.homes == nil {
		return linux.AddressFree(a)
	}
	if err := linux.Bindable(a); err != nil {
		return err
	}
	if err := r.homes.Reserve(a); err != nil {
		return err
	}
	if err := linux.AddressUnused(a); err != nil {
		return errors.Join(err, r.homes.Delete(lease.Home{Address: a}))
	}
	return nil
}

// ownLocalhosts fills in what the helper needs for them, or why there are none. The caller closes what it gets.
func ownLocalhosts(cfg *helper.Config, ground linux.Ground, tree *cgroup.Tree, log *slog.Logger) *localhost.Homes {
	homes, err := ground.HomesOf(tree)
	if err != nil {
		cfg.SharedLocalhost = api.Text(err.Error())
		log.Warn("boxes share the host's localhost", "cause", err)
		return nil
	}
	cfg.Localhost, cfg.Range = homes, rangePort{homes}
	return homes
}
