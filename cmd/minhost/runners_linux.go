package main

import (
	"context"
	"fmt"
	"path"
	"sync"

	"github.com/gominimal/minhost/linux/cgroup"
	"github.com/gominimal/minhost/linux/nft"
)

// runnersPort is the places of runners as the helper sees them: in the tree, and counted by the table.
type runnersPort struct {
	tree  *cgroup.Tree
	table *nft.Table
	mu    sync.Mutex // one account at a time makes its place
}

// Prepare implements helper.Runners.
func (r *runnersPort) Prepare(ctx context.Context, uid uint32) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	node, err := r.tree.MakeRunner(uid)
	if err != nil {
		return "", err
	}
	return path.Join(r.tree.Path(), "node", fmt.Sprint(uid)), r.table.CountRunners(ctx, node)
}

// Move implements helper.Runners.
func (r *runnersPort) Move(uid uint32, pid int) error { return r.tree.MoveRunner(uid, pid) }

// Accounts implements helper.Runners.
func (r *runnersPort) Accounts() (map[uint64]uint32, error) { return r.tree.Runners() }
