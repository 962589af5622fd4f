package nft

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Attributes of conntrack messages (linux/netfilter/nfnetlink_conntrack.h).
const (
	ctMsgDelete  = 2
	ctaMark      = 8
	ctaMarkMask  = 21
	ctSubsystem  = unix.NFNL_SUBSYS_CTNETLINK
	ctHeaderType = netlink.HeaderType(ctSubsystem<<8 | ctMsgDelete)
)

// deleteConntrack removes the conntrack entries of flows that the box with this number started or
// that were admitted to it. The kernel filters by mark, as every kernel does that knows `socket
// cgroupv2` (5.13): no dump of the whole table.
func (c *conn) deleteConntrack(ctx context.Context, m Marks, number uint16) error {
	mark, mask := m.Either(number)
	data, err := netlink.MarshalAttributes([]netlink.Attribute{attr(ctaMark, be32(mark)), attr(ctaMarkMask, be32(mask))})
	if err != nil {
		return err
	}
	_, err = c.request(ctx, netlink.Message{
		Header: netlink.Header{Type: ctHeaderType, Flags: netlink.Request | netlink.Acknowledge},
		Data:   append(genHeader(unix.AF_UNSPEC, 0), data...),
	})
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove conntrack entries of lease %d: %w", number, err)
	}
	return nil
}

// forgetLeaf removes a leaf from the sets that packets put it in: no rule does so once it has no policy.
func (t *Table) forgetLeaf(ctx context.Context, leaf uint64) error {
	for _, set := range leafSets() {
		_, present, err := t.conn.find(ctx, set, fCgroup(leaf))
		if err != nil || !present {
			continue // the set is gone with the table, or was never filled
		}
		var b batch
		b.delElements(set, []Element{{Key: fCgroup(leaf)}})
		if err := t.conn.send(ctx, &b); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove leaf %d from set %s: %w", leaf, set, err)
		}
	}
	return nil
}

// dropStale removes what packets of leaves left that are in the table no more. The others stay: a refill is
// no way to more flows.
func (t *Table) dropStale(ctx context.Context) error {
	for _, set := range leafSets() {
		filled, err := t.conn.listElements(ctx, set)
		if err != nil {
			return fmt.Errorf("list set %s: %w", set, err)
		}
		for _, e := range filled {
			if len(e.Key) != 8 {
				continue
			}
			leaf := binary.NativeEndian.Uint64([]byte(e.Key))
			if _, ok := t.state.leaves[leaf]; ok {
				continue
			}
			if err := t.forgetLeaf(ctx, leaf); err != nil {
				return err
			}
		}
	}
	return nil
}

// leafSets are the sets of leaves that packets fill.
func leafSets() []string { return []string{setFlows, setLookups} }
