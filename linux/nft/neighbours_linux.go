package nft

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Neighbours lists the other firewalls that packets of boxes pass. It only reads. An older iptables is named
// when it has a filter table, with rules in it or not: to look inside is not worth another interface.
func (t *Table) Neighbours(ctx context.Context) ([]Neighbour, error) {
	var chains []chain
	t.mu.Lock()
	err := t.conn.walk(ctx, everybodys(unix.NFT_MSG_GETCHAIN), func(family byte, data []byte) error {
		if family != inetFamily && family != unix.NFPROTO_IPV4 && family != unix.NFPROTO_IPV6 {
			return nil
		}
		c, err := readChainOf(data)
		if c.family = familyName(family); c.table != tableName || family != inetFamily {
			chains = append(chains, c)
		}
		return err
	})
	t.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("list chains of all tables: %w", err)
	}
	all := neighbours(chains)
	for _, f := range legacyFamilies {
		b, err := os.ReadFile(f.names)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return all, fmt.Errorf("list tables of %s: %w", f.program, err)
		case slices.Contains(strings.Fields(string(b)), "filter"):
			all = append(all, Neighbour{Name: f.program, Tables: []string{"filter"}})
		}
	}
	return all, nil
}

// readChainOf reads a chain of any table; what does not filter input or output has no hook.
func readChainOf(data []byte) (c chain, err error) {
	kind, number := "", uint32(0)
	err = attributes(data, func(t uint16, v []byte) error {
		switch t {
		case attrTable:
			c.table = cstring(v)
		case unix.NFTA_CHAIN_NAME:
			c.name = cstring(v)
		case unix.NFTA_CHAIN_TYPE:
			kind = cstring(v)
		case unix.NFTA_CHAIN_USE:
			c.rules = int(num(v))
		case unix.NFTA_CHAIN_POLICY:
			c.drops = num(v) == 0 // NF_DROP
		case unix.NFTA_CHAIN_HOOK:
			return attributes(v, func(t uint16, v []byte) error {
				if t == unix.NFTA_HOOK_HOOKNUM {
					number = num(v)
				}
				return nil
			})
		}
		return nil
	})
	if kind == "filter" {
		c.hook = map[uint32]string{unix.NF_INET_LOCAL_IN: "input", unix.NF_INET_LOCAL_OUT: "output"}[number]
	}
	return c, err
}
