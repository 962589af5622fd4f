package nft

import (
	"context"
	"fmt"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/lease"
)

// Sets of what runners sent and received, by their cgroup below node. Packets fill them, as a runner has no
// verdict: they are in the table only where there is a node, and the rules with them, so that a host on which no
// runner asked to be counted pays for none of it.
const (
	setNodeSent = "nodesent"
	setNodeMet  = "nodemet"
)

// runnerSets are the sets of a table that counts runners.
func (b builder) runnerSets() []Set {
	if b.Node == 0 {
		return nil
	}
	return []Set{{Name: setNodeSent, Key: []kind{kCgroup}, Dynamic: true}, {Name: setNodeMet, Key: []kind{kCgroup}, Dynamic: true}}
}

// countRunner counts a packet of a socket that was made below node, and decides nothing.
func (b builder) countRunner(set string) []Rule {
	if b.Node == 0 {
		return nil
	}
	return []Rule{rule([]expr.Any{cgroup(b.Level, r0), eq(r0, u64(b.Node)), b.leaf(r0),
		&expr.Dynset{SrcRegKey: r0, SetName: set, Operation: unix.NFT_DYNSET_OP_ADD, Exprs: []expr.Any{&expr.Counter{}}}})}
}

// CountRunners counts what is sent and received below the cgroup node from now on. Where that cannot be, the table is
// as before.
func (t *Table) CountRunners(ctx context.Context, node uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.config.Node
	if before == node {
		return nil
	}
	t.config.Node = node
	err := t.refill(ctx, t.state.verdicts())
	if err != nil {
		t.config.Node = before
		t.synced = false
		return fmt.Errorf("count runners: %w", err)
	}
	return nil
}

// countRunners reads what runners have counted.
func (t *Table) countRunners(ctx context.Context, to map[uint64]lease.Traffic) error {
	for _, s := range (builder{t.config}).runnerSets() {
		if err := t.readSet(ctx, s.Name, to); err != nil {
			return err
		}
	}
	return nil
}
