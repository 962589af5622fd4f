package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Attributes that golang.org/x/sys/unix does not name (linux/netfilter/nf_tables.h).
const (
	setFlagConcat   = 0x80
	setDescConcat   = 2
	setElemKeyEnd   = 10
	setExpr         = 17
	setFieldLen     = 1
	perMessage      = 400 // elements; an attribute ends at 64 KiB
	attrTable       = 1   // the table's name, in every message about something in a table
	userKeyByteOrd  = 0   // of a set: how the nft program shows its keys
	userDataByteOrd = 1   // the same for a map's values
	userOrderHost   = 1
	userOrderBig    = 2
	inetFamily      = unix.NFPROTO_INET
	verdictAccept   = 1 // NF_ACCEPT
)

// batch collects the messages of one transaction.
type batch struct {
	messages []netlink.Message
	sets     uint32 // ids of sets, within the batch
	err      error
}

func be32(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }
func cstr(s string) []byte { return append([]byte(s), 0) }

func attr(t uint16, data []byte) netlink.Attribute { return netlink.Attribute{Type: t, Data: data} }

func (b *batch) encode(attrs ...netlink.Attribute) []byte {
	data, err := netlink.MarshalAttributes(attrs)
	if err != nil && b.err == nil {
		b.err = err
	}
	return data
}

func (b *batch) nest(t uint16, attrs ...netlink.Attribute) netlink.Attribute {
	return attr(t|unix.NLA_F_NESTED, b.encode(attrs...))
}

// put appends a message of the nf_tables subsystem; the first attribute is always the table.
func (b *batch) put(message uint16, flags netlink.HeaderFlags, attrs ...netlink.Attribute) {
	b.messages = append(b.messages, netlink.Message{
		Header: netlink.Header{Type: nftType(message), Flags: netlink.Request | flags},
		Data:   append(genHeader(inetFamily, 0), b.encode(append([]netlink.Attribute{attr(attrTable, cstr(tableName))}, attrs...)...)...),
	})
}

func nftType(message uint16) netlink.HeaderType {
	return netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | message)
}

// genHeader is struct nfgenmsg.
func genHeader(family byte, resource uint16) []byte {
	return []byte{family, unix.NFNETLINK_V0, byte(resource >> 8), byte(resource)}
}

func (b *batch) delTable() { b.put(unix.NFT_MSG_DELTABLE, 0) }

// flushRules removes the rules of all chains of the table.
func (b *batch) flushRules() { b.put(unix.NFT_MSG_DELRULE, 0) }

func (b *batch) addChain(c Chain) {
	attrs := []netlink.Attribute{attr(unix.NFTA_CHAIN_NAME, cstr(c.Name))}
	if c.Hook != nil {
		attrs = append(attrs,
			b.nest(unix.NFTA_CHAIN_HOOK,
				attr(unix.NFTA_HOOK_HOOKNUM, be32(c.Hook.Num)),
				attr(unix.NFTA_HOOK_PRIORITY, be32(uint32(c.Hook.Priority)))),
			attr(unix.NFTA_CHAIN_POLICY, be32(verdictAccept)),
			attr(unix.NFTA_CHAIN_TYPE, cstr(c.Hook.Type)))
	}
	b.put(unix.NFT_MSG_NEWCHAIN, netlink.Create, attrs...)
}

func (b *batch) delChain(name string) {
	b.put(unix.NFT_MSG_DELCHAIN, 0, attr(unix.NFTA_CHAIN_NAME, cstr(name)))
}

func (b *batch) addSet(s Set) {
	var flags uint32
	if s.Interval {
		flags |= unix.NFT_SET_INTERVAL
	}
	if len(s.Key) > 1 {
		flags |= setFlagConcat
	}
	if s.Data != nil {
		flags |= unix.NFT_SET_MAP
	}
	if s.Dynamic {
		flags |= unix.NFT_SET_EVAL
	}
	if s.Timeout != 0 || s.Timed {
		flags |= unix.NFT_SET_TIMEOUT
	}
	b.sets++
	attrs := []netlink.Attribute{
		attr(unix.NFTA_SET_NAME, cstr(s.Name)),
		attr(unix.NFTA_SET_FLAGS, be32(flags)),
		attr(unix.NFTA_SET_KEY_TYPE, be32(s.keyMagic())),
		attr(unix.NFTA_SET_KEY_LEN, be32(s.keyLen())),
		attr(unix.NFTA_SET_ID, be32(b.sets)),
	}
	if s.Data != nil {
		attrs = append(attrs, attr(unix.NFTA_SET_DATA_TYPE, be32(magicOf(s.Data))), attr(unix.NFTA_SET_DATA_LEN, be32(lengthOf(s.Data))))
	}
	if s.Timeout != 0 {
		attrs = append(attrs, attr(unix.NFTA_SET_TIMEOUT, binary.BigEndian.AppendUint64(nil, uint64(s.Timeout)*1000)))
	}
	if s.Counted {
		counter, err := marshal(&expr.Counter{})
		b.err = errors.Join(b.err, err)
		attrs = append(attrs, attr(setExpr|unix.NLA_F_NESTED, counter))
	}
	var desc []netlink.Attribute
	if s.Dynamic {
		desc = append(desc, attr(unix.NFTA_SET_DESC_SIZE, be32(65535)))
	}
	if len(s.Key) > 1 {
		var fields []netlink.Attribute
		for _, k := range s.Key {
			fields = append(fields, b.nest(unix.NFTA_LIST_ELEM, attr(setFieldLen, be32(k.bytes))))
		}
		desc = append(desc, b.nest(setDescConcat, fields...))
	}
	if desc != nil {
		attrs = append(attrs, b.nest(unix.NFTA_SET_DESC, desc...))
	}
	b.put(unix.NFT_MSG_NEWSET, netlink.Create, append(attrs, attr(unix.NFTA_SET_USERDATA, byteOrder(s)))...)
}

// byteOrder tells the nft program in which byte order to show keys and values; without it listings lie.
func byteOrder(s Set) []byte {
	order := uint32(userOrderBig)
	if len(s.Key) == 1 && slices.Contains([]kind{kMark, kCgroup, kAddrType}, s.Key[0]) {
		order = userOrderHost
	}
	out := append([]byte{userKeyByteOrd, 4}, u32(order)...)
	if s.Data != nil {
		out = append(append(out, userDataByteOrd, 4), u32(userOrderHost)...)
	}
	return out
}

func (b *batch) delSet(name string) {
	b.put(unix.NFT_MSG_DELSET, 0, attr(unix.NFTA_SET_NAME, cstr(name)))
}

func (b *batch) addElements(set string, elements []Element) {
	b.elements(unix.NFT_MSG_NEWSETELEM, netlink.Create, set, elements, time.Now())
}

func (b *batch) delElements(set string, elements []Element) {
	b.elements(unix.NFT_MSG_DELSETELEM, 0, set, elements, time.Time{})
}

func (b *batch) elements(message uint16, flags netlink.HeaderFlags, set string, elements []Element, now time.Time) {
	elements = lasting(elements, now)
	for len(elements) > 0 {
		n := min(perMessage, len(elements))
		b.put(message, flags, attr(unix.NFTA_SET_ELEM_LIST_SET, cstr(set)), b.list(elements[:n], now))
		elements = elements[n:]
	}
}

// list writes elements. Those that are deleted (now is zero) are found by their keys.
func (b *batch) list(elements []Element, now time.Time) netlink.Attribute {
	items := make([]netlink.Attribute, 0, len(elements))
	value := func(t uint16, v string) netlink.Attribute {
		return b.nest(t, attr(unix.NFTA_DATA_VALUE, []byte(v)))
	}
	for _, e := range elements {
		parts := []netlink.Attribute{value(unix.NFTA_SET_ELEM_KEY, e.Key)}
		if e.End != "" {
			parts = append(parts, value(setElemKeyEnd, e.End))
		}
		if e.Data != "" {
			parts = append(parts, value(unix.NFTA_SET_ELEM_DATA, e.Data))
		}
		if e.Until != 0 && !now.IsZero() {
			parts = append(parts, lifetime(e, now)...)
		}
		items = append(items, b.nest(unix.NFTA_LIST_ELEM, parts...))
	}
	return b.nest(unix.NFTA_SET_ELEM_LIST_ELEMENTS, items...)
}

func (b *batch) addRule(chain string, r Rule) {
	exprs := make([]netlink.Attribute, 0, len(r))
	for _, e := range r {
		data, err := marshal(e)
		if err != nil && b.err == nil {
			b.err = fmt.Errorf("chain %s: %w", chain, err)
		}
		exprs = append(exprs, attr(unix.NFTA_LIST_ELEM|unix.NLA_F_NESTED, data))
	}
	b.put(unix.NFT_MSG_NEWRULE, netlink.Create|netlink.Append,
		attr(unix.NFTA_RULE_CHAIN, cstr(chain)), b.nest(unix.NFTA_RULE_EXPRESSIONS, exprs...))
}

// marshal encodes an expression. Of conntrack expressions the library sends a direction only with
// the keys whose addresses have the length of the family, and four bytes of it: Linux wants one and
// writes a warning into the kernel's log.
func marshal(e expr.Any) ([]byte, error) {
	c, ok := e.(*expr.Ct)
	if !ok || !ctDirected(c.Key) {
		return expr.Marshal(inetFamily, e)
	}
	data, err := netlink.MarshalAttributes([]netlink.Attribute{
		attr(unix.NFTA_CT_KEY, be32(uint32(c.Key))),
		attr(unix.NFTA_CT_DREG, be32(c.Register)),
		attr(unix.NFTA_CT_DIRECTION, []byte{byte(c.Direction)}),
	})
	if err != nil {
		return nil, err
	}
	return netlink.MarshalAttributes([]netlink.Attribute{
		attr(unix.NFTA_EXPR_NAME, cstr("ct")), attr(unix.NFTA_EXPR_DATA|unix.NLA_F_NESTED, data)})
}

func ctDirected(k expr.CtKey) bool {
	return k == unix.NFT_CT_DST_IP || k == unix.NFT_CT_DST_IP6 || k == unix.NFT_CT_PROTO_DST
}
