package nft

import (
	"context"
	"fmt"

	"github.com/google/nftables/expr"
)

// Refusals counts the packets that the table refused to boxes since it was filled: all of them, and those
// that were told to NFLOG; the token buckets kept the others back.
func (t *Table) Refusals(ctx context.Context) (refused, told uint64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err = t.conn.counters(ctx, func(chain string, counts []expr.Counter) {
		if (chain == "refuse" || chain == "refuse_in") && len(counts) == 2 {
			refused += counts[0].Packets
			told += counts[1].Packets
		}
	})
	if err != nil {
		return 0, 0, fmt.Errorf("count refusals: %w", err)
	}
	return refused, told, nil
}

// counters tells the counters of each rule of the table that has some, in order.
func (c *conn) counters(ctx context.Context, each func(chain string, counts []expr.Counter)) error {
	return c.rules(ctx, func(r someRule) error {
		counts, err := countersOf(r.expressions)
		if err == nil && len(counts) > 0 {
			each(r.chain, counts)
		}
		return err
	})
}

// countersOf returns a rule's counters, in order.
func countersOf(list []byte) (out []expr.Counter, err error) {
	err = attributes(list, func(_ uint16, v []byte) error {
		e, err := expression(v)
		if c, ok := e.(*expr.Counter); ok {
			out = append(out, *c)
		}
		return err
	})
	return out, err
}
