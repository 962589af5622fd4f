package cut

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Messages and attributes of conntrack (linux/netfilter/nfnetlink_conntrack.h).
const (
	ctNew    = 0
	ctGet    = 1
	ctDelete = 2

	ctaOriginal = 1
	ctaReply    = 2
	ctaMark     = 8
	ctaMarkMask = 21

	tupleIP    = 1
	tupleProto = 2

	protoNumber  = 1
	protoSrcPort = 2
	protoDstPort = 3
)

func trackMessage(kind uint16, flags netlink.HeaderFlags, family uint8, attrs ...netlink.Attribute) (netlink.Message, error) {
	data, err := netlink.MarshalAttributes(attrs)
	return netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_CTNETLINK<<8 | kind), Flags: netlink.Request | flags},
		Data:   append([]byte{family, unix.NFNETLINK_V0, 0, 0}, data...),
	}, err
}

func be32(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }

// lookups finds the entries of the connected sockets that were made in the leaf.
func (c *Cutter) lookups(ctx context.Context, box Box, sockets []Socket) ([]Tracked, error) {
	var out []Tracked
	asked := 0
	for _, s := range sockets {
		if !s.Remote.IsValid() || !box.Groups[s.Cgroup] {
			continue
		}
		if asked++; asked > maxLookups {
			return c.tracked(ctx, box, nil)
		}
		t, ok, err := c.lookup(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("look up conntrack entry: %w", err)
		}
		if ok && c.of(t, box.Verdict.Number) {
			out = append(out, t)
		}
	}
	return out, nil
}

// lookup asks for the entry that has a socket's ends in either direction.
func (c *Cutter) lookup(ctx context.Context, s Socket) (Tracked, bool, error) {
	return c.ask(ctx, s, ctaOriginal)
}

// ask asks for the entry whose tuple of this kind has a socket's ends.
func (c *Cutter) ask(ctx context.Context, s Socket, kind uint16) (Tracked, bool, error) {
	tuple, family, err := tupleOf(s)
	if err != nil {
		return Tracked{}, false, err
	}
	m, err := trackMessage(ctGet, netlink.Acknowledge, family, netlink.Attribute{Type: kind | unix.NLA_F_NESTED, Data: tuple})
	if err != nil {
		return Tracked{}, false, err
	}
	answers, err := c.track.Request(ctx, m)
	if errors.Is(err, unix.ENOENT) {
		return Tracked{}, false, nil
	}
	if err != nil || len(answers) == 0 {
		return Tracked{}, false, err
	}
	t, err := parseTracked(answers[0].Data)
	return t, err == nil, err
}

func tupleOf(s Socket) (tuple []byte, family uint8, err error) {
	first, family := uint16(1), uint8(unix.AF_INET)
	if s.Local.Addr().Is6() {
		first, family = 3, unix.AF_INET6
	}
	port := func(p uint16) []byte { return binary.BigEndian.AppendUint16(nil, p) }
	ip, err := netlink.MarshalAttributes([]netlink.Attribute{
		{Type: first, Data: s.Local.Addr().AsSlice()}, {Type: first + 1, Data: s.Remote.Addr().AsSlice()}})
	if err != nil {
		return nil, 0, err
	}
	proto, err := netlink.MarshalAttributes([]netlink.Attribute{{Type: protoNumber, Data: []byte{s.Protocol}},
		{Type: protoSrcPort, Data: port(s.Local.Port())}, {Type: protoDstPort, Data: port(s.Remote.Port())}})
	if err != nil {
		return nil, 0, err
	}
	tuple, err = netlink.MarshalAttributes([]netlink.Attribute{
		{Type: tupleIP | unix.NLA_F_NESTED, Data: ip}, {Type: tupleProto | unix.NLA_F_NESTED, Data: proto}})
	return tuple, family, err
}

// of says whether an entry carries the mark of a lease.
func (c *Cutter) of(t Tracked, number uint16) bool {
	mark, mask := c.marks.Either(number)
	return t.Mark&mask == mark
}

// tracked lists the entries that carry the mark of a lease. The kernel filters.
func (c *Cutter) tracked(ctx context.Context, box Box, _ []Socket) ([]Tracked, error) {
	mark, mask := c.marks.Either(box.Verdict.Number)
	m, err := trackMessage(ctGet, netlink.Dump, unix.AF_UNSPEC,
		netlink.Attribute{Type: ctaMark, Data: be32(mark)}, netlink.Attribute{Type: ctaMarkMask, Data: be32(mask)})
	if err != nil {
		return nil, err
	}
	answers, err := c.track.Request(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("list conntrack entries: %w", err)
	}
	var out []Tracked
	for _, a := range answers {
		t, err := parseTracked(a.Data)
		if err != nil {
			return nil, fmt.Errorf("list conntrack entries: %w", err)
		}
		if c.of(t, box.Verdict.Number) { // a kernel that does not filter lists all
			out = append(out, t)
		}
	}
	return out, nil
}

func parseTracked(b []byte) (Tracked, error) {
	var t Tracked
	if len(b) < 4 {
		return t, errors.New("short message")
	}
	t.family = b[0]
	ad, err := netlink.NewAttributeDecoder(b[4:])
	if err != nil {
		return t, err
	}
	for ad.Next() {
		switch ad.Type() {
		case ctaOriginal:
			t.tuple = append([]byte(nil), ad.Bytes()...)
			t.Protocol, t.From, t.To, err = parseTuple(ad.Bytes())
		case ctaReply:
			_, t.Answers, t.AnswersTo, err = parseTuple(ad.Bytes())
		case ctaMark:
			if len(ad.Bytes()) == 4 {
				t.Mark = binary.BigEndian.Uint32(ad.Bytes())
			}
		}
		if err != nil {
			return t, err
		}
	}
	return t, ad.Err()
}

// parseTuple reads one direction. Protocols without ports have port 0.
func parseTuple(b []byte) (protocol uint8, from, to netip.AddrPort, err error) {
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return 0, from, to, err
	}
	var addrs [2]netip.Addr
	var ports [2]uint16
	for ad.Next() {
		switch ad.Type() {
		case tupleIP:
			ad.Nested(func(n *netlink.AttributeDecoder) error {
				for n.Next() { // v4 source, v4 destination, v6 source, v6 destination
					if a, ok := netip.AddrFromSlice(n.Bytes()); ok && n.Type() >= 1 && n.Type() <= 4 {
						addrs[(n.Type()-1)%2] = a
					}
				}
				return nil
			})
		case tupleProto:
			ad.Nested(func(n *netlink.AttributeDecoder) error {
				for n.Next() {
					switch v := n.Bytes(); {
					case n.Type() == protoNumber && len(v) == 1:
						protocol = v[0]
					case (n.Type() == protoSrcPort || n.Type() == protoDstPort) && len(v) == 2:
						ports[n.Type()-protoSrcPort] = binary.BigEndian.Uint16(v)
					}
				}
				return nil
			})
		}
	}
	return protocol, netip.AddrPortFrom(addrs[0], ports[0]), netip.AddrPortFrom(addrs[1], ports[1]), ad.Err()
}

// markEnded writes what the table answers with resets; forget removes the entry. One that is gone
// is no error.
func (c *Cutter) markEnded(ctx context.Context, t Tracked) error {
	set, bits := c.marks.Ended()
	return c.change(ctx, ctNew, t, "mark", netlink.Attribute{Type: ctaMark, Data: be32(set)},
		netlink.Attribute{Type: ctaMarkMask, Data: be32(bits)})
}

// renew gives a flow the other generation: the policy of now admits it.
func (c *Cutter) renew(ctx context.Context, t Tracked) error {
	bit := c.marks.Generation()
	return c.change(ctx, ctNew, t, "renew", netlink.Attribute{Type: ctaMark, Data: be32(^t.Mark & bit)},
		netlink.Attribute{Type: ctaMarkMask, Data: be32(bit)})
}

func (c *Cutter) forget(ctx context.Context, t Tracked) error {
	return c.change(ctx, ctDelete, t, "remove")
}

func (c *Cutter) change(ctx context.Context, kind uint16, t Tracked, word string, more ...netlink.Attribute) error {
	m, err := trackMessage(kind, netlink.Acknowledge, t.family,
		append([]netlink.Attribute{{Type: ctaOriginal | unix.NLA_F_NESTED, Data: t.tuple}}, more...)...)
	if err != nil {
		return err
	}
	if _, err = c.track.Request(ctx, m); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%s conntrack entry %v to %v: %w", word, t.From, t.To, err)
	}
	return nil
}
