package nft

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// attributes calls f for each attribute of a message's or an attribute's payload.
func attributes(data []byte, f func(t uint16, v []byte) error) error {
	ad, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return err
	}
	for ad.Next() {
		if err := f(ad.Type(), ad.Bytes()); err != nil {
			return err
		}
	}
	return ad.Err()
}

func cstring(v []byte) string {
	if n := len(v); n > 0 && v[n-1] == 0 {
		v = v[:n-1]
	}
	return string(v)
}

func num(v []byte) uint32 {
	if len(v) != 4 {
		return 0
	}
	return binary.BigEndian.Uint32(v)
}

// listed is what the kernel has under the table's name. Definitions and rules are text, as rendered
// from the wanted ones.
type listed struct {
	present  bool
	flags    uint32
	chains   map[string]string   // definition by name
	hooked   map[string]bool     // base chains
	rules    map[string][]string // by chain, in order
	sets     map[string]string   // definition by name
	elements map[string][]Element
}

// policies is the map of policies: id by leaf.
func (l listed) policies() map[uint64]uint32 {
	out := map[uint64]uint32{}
	for _, e := range l.elements[setPolicy] {
		if id, ok := policyID(e.Data); ok && len(e.Key) == 8 {
			out[binary.NativeEndian.Uint64([]byte(e.Key))] = id
		}
	}
	return out
}

// list reads the table. Elements are read of sets that are not dynamic and only when asked for.
func (c *conn) list(ctx context.Context, elements bool) (listed, error) {
	l := listed{chains: map[string]string{}, hooked: map[string]bool{}, rules: map[string][]string{},
		sets: map[string]string{}, elements: map[string][]Element{}}
	var err error
	l.flags, l.present, err = c.tableFlags(ctx)
	if err != nil || !l.present {
		return l, err
	}
	if err := c.listChains(ctx, &l); err != nil {
		return l, fmt.Errorf("list chains: %w", err)
	}
	if err := c.listRules(ctx, &l); err != nil {
		return l, fmt.Errorf("list rules: %w", err)
	}
	err = c.dump(ctx, unix.NFT_MSG_GETSET, func(data []byte) error {
		s, err := readSet(data)
		if err == nil {
			l.sets[s.Name] = s.definition()
		}
		return err
	})
	if err != nil {
		return l, fmt.Errorf("list sets: %w", err)
	}
	if !elements {
		return l, nil
	}
	for _, s := range emptySets() {
		if _, ok := l.sets[s.Name]; !ok || s.Dynamic {
			continue
		}
		if l.elements[s.Name], err = c.listElements(ctx, s.Name); err != nil {
			return l, fmt.Errorf("list set %s: %w", s.Name, err)
		}
	}
	return l, nil
}

// listChains reads the chains of all tables of the family: the kernel does not filter them.
func (c *conn) listChains(ctx context.Context, l *listed) error {
	return c.dump(ctx, unix.NFT_MSG_GETCHAIN, func(data []byte) error {
		var ch Chain
		table, policy := "", uint32(verdictAccept)
		err := attributes(data, func(t uint16, v []byte) error {
			switch t {
			case attrTable:
				table = cstring(v)
			case unix.NFTA_CHAIN_NAME:
				ch.Name = cstring(v)
			case unix.NFTA_CHAIN_POLICY:
				policy = num(v)
			case unix.NFTA_CHAIN_TYPE:
				hook(&ch).Type = cstring(v)
			case unix.NFTA_CHAIN_HOOK:
				return attributes(v, func(t uint16, v []byte) error {
					switch t {
					case unix.NFTA_HOOK_HOOKNUM:
						hook(&ch).Num = num(v)
					case unix.NFTA_HOOK_PRIORITY:
						hook(&ch).Priority = int32(num(v))
					}
					return nil
				})
			}
			return nil
		})
		if err != nil || table != tableName {
			return err
		}
		l.chains[ch.Name] = ch.definition()
		if policy != verdictAccept {
			l.chains[ch.Name] += " policy drop"
		}
		l.hooked[ch.Name] = ch.Hook != nil
		return nil
	})
}

func hook(c *Chain) *Hook {
	if c.Hook == nil {
		c.Hook = &Hook{}
	}
	return c.Hook
}

func (c *conn) listRules(ctx context.Context, l *listed) error {
	return c.rules(ctx, func(r someRule) error {
		text, err := renderWire(r.expressions)
		if err == nil {
			l.rules[r.chain] = append(l.rules[r.chain], text)
		}
		return err
	})
}

// readSet reads what Set.definition needs. Types are known by their number only.
func readSet(data []byte) (Set, error) {
	var s Set
	var key, keyLen uint32
	var value kind
	err := attributes(data, func(t uint16, v []byte) error {
		switch t {
		case unix.NFTA_SET_NAME:
			s.Name = cstring(v)
		case unix.NFTA_SET_FLAGS:
			f := num(v)
			s.Interval, s.Dynamic, s.Timed = f&unix.NFT_SET_INTERVAL != 0, f&unix.NFT_SET_EVAL != 0, f&unix.NFT_SET_TIMEOUT != 0
		case setExpr:
			s.Counted = true
		case unix.NFTA_SET_KEY_TYPE:
			key = num(v)
		case unix.NFTA_SET_KEY_LEN:
			keyLen = num(v)
		case unix.NFTA_SET_DATA_TYPE:
			value.magic = num(v)
		case unix.NFTA_SET_DATA_LEN:
			value.bytes = num(v)
		case unix.NFTA_SET_TIMEOUT:
			s.Timeout = uint32(binary.BigEndian.Uint64(v) / 1000)
		}
		return nil
	})
	s.Key = []kind{{bytes: keyLen, magic: key}}
	if value.bytes != 0 {
		s.Data = []kind{value}
	}
	return s, err
}
