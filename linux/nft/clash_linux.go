package nft

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// MarkClashes says, one line each, which rules of other tables set bits of marks that are ours, those of
// iptables-nft too. Nothing breaks open by them: the table writes its bits last, and a packet of the
// host that has them by chance loses them over loopback. A box may be refused. It only reads.
func (t *Table) MarkClashes(ctx context.Context) ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	answers, err := t.conn.request(ctx, netlink.Message{
		Header: netlink.Header{Type: nftType(unix.NFT_MSG_GETRULE), Flags: netlink.Request | netlink.Dump},
		Data:   genHeader(unix.AF_UNSPEC, 0),
	})
	if err != nil {
		return nil, fmt.Errorf("list rules of all tables: %w", err)
	}
	var out []string
	for _, a := range answers {
		if len(a.Data) < 4 {
			continue
		}
		var table, chain string
		var bits uint32
		err := attributes(a.Data[4:], func(t uint16, v []byte) (err error) {
			switch t {
			case attrTable:
				table = cstring(v)
			case unix.NFTA_RULE_CHAIN:
				chain = cstring(v)
			case unix.NFTA_RULE_EXPRESSIONS:
				bits, err = marksSet(v)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read a rule: %w", err)
		}
		if ours := bits & t.config.Marks.Bits(); ours != 0 && (table != tableName || a.Data[0] != inetFamily) {
			out = append(out, fmt.Sprintf("table %s %s, chain %s sets the mark bits %#x", familyName(a.Data[0]), table, chain, ours))
		}
	}
	return out, nil
}

func familyName(f byte) string {
	if name, ok := map[byte]string{unix.NFPROTO_INET: "inet", unix.NFPROTO_IPV4: "ip", unix.NFPROTO_IPV6: "ip6",
		unix.NFPROTO_NETDEV: "netdev", unix.NFPROTO_BRIDGE: "bridge", unix.NFPROTO_ARP: "arp"}[f]; ok {
		return name
	}
	return fmt.Sprintf("family %d", f)
}

// marksSet returns the bits that a rule sets in the packet's mark or in that of its connection.
func marksSet(list []byte) (bits uint32, err error) {
	known := map[uint32]uint32{} // what a register is known to have set
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
		if err != nil {
			return err
		}
		switch e := decode(name, data).(type) {
		case *expr.Immediate:
			if len(e.Data) == 4 {
				known[e.Register] = binary.NativeEndian.Uint32(e.Data)
			}
		case *expr.Bitwise:
			if len(e.Xor) == 4 {
				known[e.DestRegister] = known[e.SourceRegister]&binary.NativeEndian.Uint32(e.Mask) ^ binary.NativeEndian.Uint32(e.Xor)
			}
		case *expr.Meta:
			if e.SourceRegister && e.Key == expr.MetaKeyMARK {
				bits |= known[e.Register]
			}
			if !e.SourceRegister {
				delete(known, e.Register)
			}
		case *expr.Ct:
			if e.SourceRegister && e.Key == expr.CtKeyMARK {
				bits |= known[e.Register]
			}
		}
		if name == "target" {
			bits |= targetMark(data)
		}
		return nil
	})
	return bits, err
}

// targetMark reads MARK and CONNMARK of iptables-nft: both begin with the value (linux/netfilter/xt_mark.h,
// xt_connmark.h).
func targetMark(data []byte) (bits uint32) {
	var name string
	var info []byte
	_ = attributes(data, func(t uint16, v []byte) error {
		switch t {
		case unix.NFTA_TARGET_NAME:
			name = cstring(v)
		case unix.NFTA_TARGET_INFO:
			info = v
		}
		return nil
	})
	if (name == "MARK" || name == "CONNMARK") && len(info) >= 4 {
		return binary.NativeEndian.Uint32(info)
	}
	return 0
}
