package nft

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"
)

// MarkClashes says, one line each, which rules of others set bits of marks that are ours, or copy them between
// packets and connections: in nftables, those of iptables-nft too, and in the older iptables of both families.
// Nothing breaks open by them: the table writes its bits last, and a packet of the host that has them by
// chance loses them over loopback. A box may be refused. It only reads.
func (t *Table) MarkClashes(ctx context.Context) ([]string, error) {
	return t.clashesOf(ctx, t.config.Marks.Bits()|t.config.Planes.Bits())
}

// PlaneClashes are those of the bits that name planes.
func (t *Table) PlaneClashes(ctx context.Context) ([]string, error) {
	return t.clashesOf(ctx, t.config.Planes.Bits())
}

func (t *Table) clashesOf(ctx context.Context, bits uint32) ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	err := t.conn.walk(ctx, everybodys(unix.NFT_MSG_GETRULE), func(of byte, data []byte) error {
		r, err := readRule(data)
		if err != nil || r.table == tableName && of == inetFamily {
			return err
		}
		e, err := effectOf(r.expressions)
		family := familyName(of)
		for _, text := range e.clashes(bits) {
			out = append(out, fmt.Sprintf("table %s %s, chain %s %s (nft -a list chain %s %s %s: handle %d)", family, r.table, r.chain, text, family, r.table, r.chain, r.handle))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list rules of all tables: %w", err)
	}
	older, err := legacyClashes(bits)
	return append(out, older...), err
}

func familyName(f byte) string {
	if name, ok := map[byte]string{unix.NFPROTO_INET: "inet", unix.NFPROTO_IPV4: "ip", unix.NFPROTO_IPV6: "ip6",
		unix.NFPROTO_NETDEV: "netdev", unix.NFPROTO_BRIDGE: "bridge", unix.NFPROTO_ARP: "arp"}[f]; ok {
		return name
	}
	return fmt.Sprintf("family %d", f)
}

// effect is what a rule does to marks, as the bits that it may touch.
type effect struct {
	set  uint32 // it writes ones there, in a packet's mark or in a connection's
	copy uint32 // it copies there from a packet to its connection, or back
}

func (e effect) clashes(ours uint32) (out []string) {
	if bits := e.set & ours; bits != 0 {
		out = append(out, fmt.Sprintf("sets the mark bits %#x", bits))
	}
	if bits := e.copy & ours; bits != 0 {
		out = append(out, fmt.Sprintf("copies the mark bits %#x between packets and connections", bits))
	}
	return out
}
