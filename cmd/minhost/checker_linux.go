package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gominimal/minhost/installer"
	"github.com/gominimal/minhost/installer/api"
	"github.com/gominimal/minhost/linux"
	"github.com/gominimal/minhost/linux/belt"
	"github.com/gominimal/minhost/linux/nft"
	"github.com/gominimal/minhost/linux/selftest"
)

// refusalGroup is the NFLOG group of refused packets.
const refusalGroup = 64

// openTable opens the table, as the helper's only writer, and the reader of its refusals.
func openTable(ctx context.Context, g linux.Ground, kept *tableOwner, handle func(nft.Refused)) (*nft.Reader, *nft.Table, error) {
	if err := g.Capable(ctx); err != nil {
		return nil, nil, err
	}
	tree, err := g.Tree()
	if err != nil {
		return nil, nil, err
	}
	defer tree.Close()
	table, err := g.WriterOf(ctx, tree, kept.get)
	if err != nil {
		return nil, nil, err
	}
	reader, err := nft.NewReader(refusalGroup, handle)
	if err != nil {
		return nil, nil, errors.Join(err, table.Close())
	}
	return reader, table, nil
}

// groundChecker makes the helper's checks of tree, belt and effect.
type groundChecker struct {
	ground  linux.Ground
	program string
	owner   *tableOwner
}

// Checks implements helper.Checker.
func (c groundChecker) Checks(ctx context.Context) []api.Check {
	return append([]api.Check{c.step(ctx, linux.TreeStep{Ground: c.ground}), c.step(ctx, linux.BeltStep{Ground: c.ground}), c.step(ctx, linux.LocalhostStep{Ground: c.ground}), c.effect(ctx), c.layers(ctx), c.kernel(ctx), c.tracking(), c.marks(ctx), c.neighbours(ctx)}, c.migration()...)
}

// step is the probe of a step, made by root.
func (groundChecker) step(ctx context.Context, s installer.Step) api.Check {
	check := api.Check{Name: string(s.ID()), State: api.CheckStateFailed}
	o, err := s.Probe(ctx)
	switch {
	case err != nil:
		check.Detail = api.Text(err.Error())
	case o.State == installer.Satisfied:
		check.State, check.Detail = api.CheckStateOK, o.Detail
		return check
	default:
		check.Detail = fmt.Sprintf("%s: %s", o.State, o.Detail)
	}
	check.Loses, check.Next = o.Loses, "as root: minhost apply"
	return check
}

// effect is the live self-test: a throw-away leaf under boxes, refused while the host connects.
func (c groundChecker) effect(ctx context.Context) api.Check {
	check := api.Check{Name: "an unknown box is refused, the host is not", State: api.CheckStateFailed,
		Loses: "boxes may reach what they must not: confined boxes must not run", Next: "as root: minhost apply"}
	tree, err := c.ground.Tree()
	if err != nil {
		check.Detail = api.Text(err.Error())
		return check
	}
	defer tree.Close()
	r, err := selftest.Run(ctx, selftest.Config{Tree: tree, Program: c.program, Args: []string{selfTestVerb}})
	if err != nil {
		check.Detail = api.Text(err.Error())
		return check
	}
	check.Detail = r.String()
	if r.OK() {
		check.State, check.Loses, check.Next = api.CheckStateOK, "", ""
		if !r.ByTable() {
			check.State, check.Loses, check.Next = api.CheckStateWarning, "refusals are silent: connects time out instead of failing at once", "as root: minhost apply"
		}
	}
	return check
}

// layers names what stands between a box and an open network when somebody flushes the firewall.
func (c groundChecker) layers(ctx context.Context) api.Check {
	check := api.Check{Name: "protection against a flushed firewall", State: api.CheckStateFailed,
		Loses: "a flushed firewall opens every box until the helper has mended it", Next: "as root: minhost apply"}
	if lacks := c.ground.Beltless(); lacks != nil {
		return c.owned(ctx, check, lacks)
	}
	every := false
	err := c.ground.Belt(func(b *belt.Belt) error {
		every = b.EveryNamespace()
		r, err := b.Probe()
		if err == nil && r.State != installer.Satisfied {
			err = errors.New(r.Detail)
		}
		return err
	})
	if err != nil {
		check.Detail = api.Text(err.Error())
		return check
	}
	check.State, check.Detail, check.Loses, check.Next = api.CheckStateOK, "the belt (cgroup BPF) refuses, the helper mends the table", "", ""
	if every {
		check.State, check.Loses = api.CheckStateWarning, "a network namespace that a box makes for itself has no loopback"
		check.Detail += "; this kernel does not tell it the network namespace of a packet (bpf_get_netns_cookie), so it acts in all"
	}
	return check
}
