package nft

import (
	"context"
	"fmt"
)

// Foreign tells whether the kernel has a table of our name that no minhost made: every version of
// ours has the map of policies, and a batch is written whole or not at all. It only reads.
func (t *Table) Foreign(ctx context.Context) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	have, err := t.conn.list(ctx, false)
	if err != nil {
		return false, fmt.Errorf("probe: %w", err)
	}
	_, ours := have.sets[setPolicy]
	return have.present && !ours, nil
}
