package nft

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/installer/lease"
)

// Traffic of boxes is counted by the elements that their packets find anyway. A packet that is approved or
// admitted finds one of them once. What a box sends to a box over lo is counted where it is sent.

// received are the counted sets of packets to boxes and runners; the others are of packets from them.
func received(set string) bool { return set == setOwn || set == setMet || set == setNodeMet }

func counted() map[string]bool {
	out := map[string]bool{}
	for _, s := range emptySets() {
		if s.Counted {
			out[s.Name] = true
		}
	}
	return out
}

// Traffic tells what passed since the table was filled, or since this process began to count boxes that
// ended and policies that were replaced.
func (t *Table) Traffic(ctx context.Context) (lease.Planes, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := lease.Planes{Cohort: t.gone, Boxes: map[uint64]lease.Traffic{}, Runners: map[uint64]lease.Traffic{}}
	for leaf := range t.state.leaves {
		out.Boxes[leaf] = t.before[leaf]
	}
	for set := range counted() {
		if err := t.readSet(ctx, set, out.Boxes); err != nil {
			return out, err
		}
	}
	if err := t.countRunners(ctx, out.Runners); err != nil {
		return out, err
	}
	for _, b := range out.Boxes {
		out.Cohort = out.Cohort.Plus(b)
	}
	return out, t.countNode(ctx, &out.Node)
}

// readSet adds what the elements of a set have counted.
func (t *Table) readSet(ctx context.Context, set string, to map[uint64]lease.Traffic) error {
	err := t.conn.dump(ctx, unix.NFT_MSG_GETSETELEM, func(data []byte) error {
		return readCounts(data, set, to)
	}, attr(unix.NFTA_SET_ELEM_LIST_SET, cstr(set)))
	if err != nil {
		return fmt.Errorf("count traffic in set %s: %w", set, err)
	}
	return nil
}

// keepCounts remembers what elements have counted that are about to go. What passes in between is lost.
func (t *Table) keepCounts(ctx context.Context, gone []setElement) {
	sets := counted()
	for _, e := range gone {
		if !sets[e.set] {
			continue
		}
		// An error: it has ended by itself, or the table is not as it was left, and is refilled then.
		_ = t.conn.element(ctx, e.set, e.Key, func(data []byte) error { return readCounts(data, e.set, t.before) })
	}
}

// forgetCounts adds a box that ended to those that did.
func (t *Table) forgetCounts(leaf uint64) {
	t.gone = t.gone.Plus(t.before[leaf])
	delete(t.before, leaf)
}

// readCounts adds the counts of elements to those of their leaves, where their keys begin.
func readCounts(data []byte, set string, to map[uint64]lease.Traffic) error {
	return attributes(data, func(t uint16, v []byte) error {
		if t != unix.NFTA_SET_ELEM_LIST_ELEMENTS {
			return nil
		}
		return attributes(v, func(_ uint16, v []byte) error {
			var key []byte
			var c *expr.Counter
			err := attributes(v, func(t uint16, v []byte) (err error) {
				switch t {
				case unix.NFTA_SET_ELEM_KEY:
					err = attributes(v, func(_ uint16, v []byte) error { key = v; return nil })
				case unix.NFTA_SET_ELEM_EXPR:
					var e expr.Any
					if e, err = expression(v); err == nil {
						c, _ = e.(*expr.Counter)
					}
				}
				return err
			})
			if len(key) >= 8 && c != nil && c.Packets > 0 {
				leaf, n := binary.NativeEndian.Uint64(key), lease.Traffic{SentPackets: c.Packets, SentBytes: c.Bytes}
				if received(set) {
					n = lease.Traffic{ReceivedPackets: c.Packets, ReceivedBytes: c.Bytes}
				}
				to[leaf] = to[leaf].Plus(n)
			}
			return err
		})
	})
}

// countNode reads the counters of the base chains, which packets of boxes do not come to.
func (t *Table) countNode(ctx context.Context, node *lease.Traffic) error {
	err := t.conn.counters(ctx, func(chain string, counts []expr.Counter) {
		switch {
		case len(counts) != 1:
		case chain == "out":
			node.SentPackets, node.SentBytes = counts[0].Packets, counts[0].Bytes
		case chain == "in":
			node.ReceivedPackets, node.ReceivedBytes = counts[0].Packets, counts[0].Bytes
		}
	})
	if err != nil {
		return fmt.Errorf("count traffic: %w", err)
	}
	return nil
}
