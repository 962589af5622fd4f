package nft

import (
	"context"
	"fmt"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Refusals counts the packets that the table refused to boxes since it was filled: all of them, and those
// that were told to NFLOG; the token buckets kept the others back.
func (t *Table) Refusals(ctx context.Context) (refused, told uint64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err = t.conn.dump(ctx, unix.NFT_MSG_GETRULE, func(data []byte) error {
		var table, chain string
		var counts []uint64
		err := attributes(data, func(t uint16, v []byte) (err error) {
			switch t {
			case attrTable:
				table = cstring(v)
			case unix.NFTA_RULE_CHAIN:
				chain = cstring(v)
			case unix.NFTA_RULE_EXPRESSIONS:
				counts, err = countersOf(v)
			}
			return err
		})
		if err == nil && table == tableName && (chain == "refuse" || chain == "refuse_in") && len(counts) == 2 {
			refused += counts[0]
			told += counts[1]
		}
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("count refusals: %w", err)
	}
	return refused, told, nil
}

// countersOf returns the packets of a rule's counters, in order.
func countersOf(list []byte) (packets []uint64, err error) {
	err = attributes(list, func(_ uint16, v []byte) error {
		var name string
		var data []byte
		err := attributes(v, func(t uint16, v []byte) error {
			switch t {
			case unix.NFTA_EXPR_NAME:
				name = cstring(v)
			case unix.NFTA_EXPR_DATA:
				data = v
			}
			return nil
		})
		if c, ok := decode(name, data).(*expr.Counter); ok && err == nil {
			packets = append(packets, c.Packets)
		}
		return err
	})
	return packets, err
}
