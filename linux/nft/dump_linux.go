package nft

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// walk asks and calls f with the family and the attributes of each answer.
func (c *conn) walk(ctx context.Context, m netlink.Message, f func(family byte, data []byte) error) error {
	answers, err := c.request(ctx, m)
	if err != nil {
		return err
	}
	for _, a := range answers {
		if len(a.Data) < 4 {
			continue
		}
		if err := f(a.Data[0], a.Data[4:]); err != nil {
			return err
		}
	}
	return nil
}

// everybodys asks for the objects of all tables.
func everybodys(message uint16) netlink.Message {
	return netlink.Message{
		Header: netlink.Header{Type: nftType(message), Flags: netlink.Request | netlink.Dump},
		Data:   genHeader(unix.AF_UNSPEC, 0),
	}
}

// dump lists objects of the table. Without a table there are none.
func (c *conn) dump(ctx context.Context, message uint16, f func(data []byte) error, attrs ...netlink.Attribute) error {
	err := c.get(ctx, message, netlink.Dump, f, attrs...)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// get asks for what is of the table, or for the table.
func (c *conn) get(ctx context.Context, message uint16, flags netlink.HeaderFlags, f func(data []byte) error, attrs ...netlink.Attribute) error {
	var b batch
	b.put(message, flags, attrs...)
	if b.err != nil {
		return b.err
	}
	return c.walk(ctx, b.messages[0], func(_ byte, data []byte) error { return f(data) })
}

// someRule is a rule as the kernel lists it.
type someRule struct {
	table, chain string
	handle       uint64
	expressions  []byte
}

func readRule(data []byte) (r someRule, err error) {
	err = attributes(data, func(t uint16, v []byte) error {
		switch t {
		case attrTable:
			r.table = cstring(v)
		case unix.NFTA_RULE_CHAIN:
			r.chain = cstring(v)
		case unix.NFTA_RULE_HANDLE:
			r.handle = binary.BigEndian.Uint64(v)
		case unix.NFTA_RULE_EXPRESSIONS:
			r.expressions = v
		}
		return nil
	})
	return r, err
}

// rules lists those of the table, in order.
func (c *conn) rules(ctx context.Context, f func(someRule) error) error {
	return c.dump(ctx, unix.NFT_MSG_GETRULE, func(data []byte) error {
		r, err := readRule(data)
		if err == nil && r.table == tableName {
			err = f(r)
		}
		return err
	})
}
