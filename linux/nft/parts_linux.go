package nft

import (
	"encoding/binary"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Registers are the 32-bit ones. r0 is the first; a key of a set is loaded from there on without
// gaps, and values that are not part of a key go to rTmp and up.
const (
	r0   = unix.NFT_REG32_00
	rTmp = unix.NFT_REG32_10
)

// TCP flags.
const (
	tcpFIN, tcpSYN, tcpRST, tcpACK = 1, 2, 4, 16
)

func u32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }
func u64(v uint64) []byte { return binary.NativeEndian.AppendUint64(nil, v) }

func verdict(kind expr.VerdictKind, chain string) []expr.Any {
	return []expr.Any{&expr.Verdict{Kind: kind, Chain: chain}}
}

func jumpTo(chain string) []expr.Any { return verdict(expr.VerdictJump, chain) }
func goTo(chain string) []expr.Any   { return verdict(expr.VerdictGoto, chain) }
func accept() []expr.Any             { return verdict(expr.VerdictAccept, "") }

func eq(reg uint32, data []byte) expr.Any {
	return &expr.Cmp{Op: expr.CmpOpEq, Register: reg, Data: data}
}

func neq(reg uint32, data []byte) expr.Any {
	return &expr.Cmp{Op: expr.CmpOpNeq, Register: reg, Data: data}
}

// cgroup loads the id of the ancestor at a depth; without such an ancestor, and without a full
// socket, the rule does not match.
func cgroup(level int, reg uint32) expr.Any {
	return &expr.Socket{Key: expr.SocketKeyCgroupv2, Level: uint32(level), Register: reg}
}

// inBoxes matches sockets of boxes, unknown ones and those of processes directly in boxes too.
func (b builder) inBoxes() []expr.Any {
	return []expr.Any{cgroup(b.Level, r0), eq(r0, u64(b.Boxes))}
}

// leaf loads the id of the socket's leaf.
func (b builder) leaf(reg uint32) expr.Any { return cgroup(b.Level+1, reg) }

// rPolicy is where a key begins whose first part is the policy id.
const rPolicy = r0 + 1

// policy loads the policy id of the socket's leaf into rPolicy; unknown leaves do not match. The map's
// value is two words, and the second, the id, lands on a register that was loaded with the packet's
// mark before: nft 1.0.6 (Debian 12) aborts when it lists a key that begins with a map's value, so it
// is shown the mark in its place. Nothing else reads that load.
func (b builder) policy() []expr.Any {
	return []expr.Any{b.leaf(rTmp), meta(expr.MetaKeyMARK, rPolicy), lookupMap(setPolicy, rTmp, r0)}
}

// known matches leaves that have a policy. The comparison is always true; it makes the condition
// visible in nft's listing.
func (b builder) known() []expr.Any {
	return []expr.Any{b.leaf(rTmp), lookupMap(setPolicy, rTmp, r0), neq(r0, u32(0))}
}

// kind matches leaves whose policy is of this kind.
func (b builder) kind(k uint32) []expr.Any {
	return []expr.Any{b.leaf(rTmp), lookupMap(setPolicy, rTmp, r0), eq(r0, u32(k))}
}

// fullSocket matches when there is a socket that is neither a request nor in TIME_WAIT: only those have
// a mark, and each is at least 0.
func fullSocket() []expr.Any {
	return []expr.Any{&expr.Socket{Key: expr.SocketKeyMark, Register: rTmp},
		&expr.Cmp{Op: expr.CmpOpGte, Register: rTmp, Data: u32(0)}}
}

func lookup(set string, reg uint32) expr.Any {
	return &expr.Lookup{SetName: set, SourceRegister: reg}
}

func lookupMap(set string, from, to uint32) expr.Any {
	return &expr.Lookup{SetName: set, SourceRegister: from, DestRegister: to, IsDestRegSet: true}
}

func meta(key expr.MetaKey, reg uint32) expr.Any { return &expr.Meta{Key: key, Register: reg} }

func family(f byte) []expr.Any {
	return []expr.Any{meta(expr.MetaKeyNFPROTO, rTmp), eq(rTmp, []byte{f})}
}

func ipv4() []expr.Any { return family(unix.NFPROTO_IPV4) }
func ipv6() []expr.Any { return family(unix.NFPROTO_IPV6) }

func proto(p byte) []expr.Any {
	return []expr.Any{meta(expr.MetaKeyL4PROTO, rTmp), eq(rTmp, []byte{p})}
}

func notProto(p byte) []expr.Any {
	return []expr.Any{meta(expr.MetaKeyL4PROTO, rTmp), neq(rTmp, []byte{p})}
}

func loadProto(reg uint32) expr.Any { return meta(expr.MetaKeyL4PROTO, reg) }

// Addresses and ports of the packet itself.

func daddr4(reg uint32) expr.Any { return network(16, 4, reg) }
func daddr6(reg uint32) expr.Any { return network(24, 16, reg) }
func saddr4(reg uint32) expr.Any { return network(12, 4, reg) }

func network(offset, length, reg uint32) expr.Any {
	return &expr.Payload{Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: length, DestRegister: reg}
}

func dport(reg uint32) expr.Any {
	return &expr.Payload{Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2, DestRegister: reg}
}

// tcpFlags matches when the flags under the mask are these; equal false turns it round.
func tcpFlags(mask, flags byte, equal bool) []expr.Any {
	test := eq(rTmp, []byte{flags})
	if !equal {
		test = neq(rTmp, []byte{flags})
	}
	return append(proto(protoTCP),
		&expr.Payload{Base: expr.PayloadBaseTransportHeader, Offset: 13, Len: 1, DestRegister: rTmp},
		&expr.Bitwise{SourceRegister: rTmp, DestRegister: rTmp, Len: 1, Mask: []byte{mask}, Xor: []byte{0}},
		test)
}

// notPureSYN matches TCP packets that can't begin a connection: a listener answers nothing else.
func notPureSYN() []expr.Any {
	return tcpFlags(tcpFIN|tcpSYN|tcpRST|tcpACK, tcpSYN, false)
}

// Connection tracking. Packets without an entry (invalid, untracked) match none of these.

func ct(key expr.CtKey, reg uint32) expr.Any { return &expr.Ct{Key: key, Register: reg} }

func ctState(bits uint32) []expr.Any {
	return []expr.Any{ct(expr.CtKeySTATE, rTmp), mask(rTmp, bits), neq(rTmp, u32(0))}
}

const dirOriginal, dirReply = 0, 1

func ctDirection(dir byte) []expr.Any {
	return []expr.Any{ct(expr.CtKeyDIRECTION, rTmp), eq(rTmp, []byte{dir})}
}

func (b builder) ctMark(reg uint32) []expr.Any {
	return []expr.Any{ct(expr.CtKeyMARK, reg), mask(reg, b.Marks.flow())}
}

// ended matches TCP packets of a flow that a new policy ended (linux/cut), but for the resets that tell
// its ends.
func (b builder) ended() []expr.Any {
	set, bits := b.Marks.Ended()
	return append([]expr.Any{ct(expr.CtKeyMARK, rTmp), mask(rTmp, b.Marks.Lease|bits), eq(rTmp, u32(b.Marks.Lease|set))}, tcpFlags(tcpRST, tcpRST, false)...)
}

// setCtMark writes the mark that a map has for the leaf.
func (b builder) setCtMark(set string) []expr.Any {
	return []expr.Any{b.leaf(rTmp), lookupMap(set, rTmp, r0), &expr.Ct{Key: expr.CtKeyMARK, Register: r0, SourceRegister: true}}
}

// The packet's mark.

func mask(reg, bits uint32) expr.Any {
	return &expr.Bitwise{SourceRegister: reg, DestRegister: reg, Len: 4, Mask: u32(bits), Xor: u32(0)}
}

func markHas(bit uint32) []expr.Any {
	return []expr.Any{meta(expr.MetaKeyMARK, rTmp), mask(rTmp, bit), neq(rTmp, u32(0))}
}

func (b builder) ourMark(reg uint32) []expr.Any {
	return []expr.Any{meta(expr.MetaKeyMARK, reg), mask(reg, b.Marks.ours())}
}

func writeMark(reg uint32) expr.Any {
	return &expr.Meta{Key: expr.MetaKeyMARK, Register: reg, SourceRegister: true}
}

// orMark sets one bit and keeps the others: they belong to other tables.
func orMark(bit uint32) []expr.Any { return putMark(bit, bit) }

// putMark sets some of these bits and clears the rest of them.
func putMark(bits, set uint32) []expr.Any {
	return []expr.Any{meta(expr.MetaKeyMARK, r0),
		&expr.Bitwise{SourceRegister: r0, DestRegister: r0, Len: 4, Mask: u32(^bits), Xor: u32(set)}, writeMark(r0)}
}

func clearMark(bit uint32) []expr.Any {
	return []expr.Any{meta(expr.MetaKeyMARK, r0), mask(r0, ^bit), writeMark(r0)}
}

// setMark writes the mark that a map has for the leaf. It replaces the whole mark: nf_tables has no
// "or" of two registers before Linux 6.13, and these packets are a box's own, to local addresses.
func (b builder) setMark(set string) []expr.Any {
	return []expr.Any{b.leaf(rTmp), lookupMap(set, rTmp, r0), writeMark(r0)}
}

// carry does that for what goes to a local address, and writes the same into the packet's priority, which nobody
// else reads over lo: other tables may change marks before the input hook. wg-quick restores those of
// connections in prerouting, so that a box's datagrams came in as this host's.
func (b builder) carry(set string) []expr.Any { return append(b.setMark(set), writePriority(r0)) }

// carried matches priorities that carry has written.
func (b builder) carried() []expr.Any {
	priority, vary := b.Marks.Sent()
	return []expr.Any{meta(expr.MetaKeyPRIORITY, rTmp), mask(rTmp, ^vary), eq(rTmp, u32(priority))}
}

// takeOver makes the mark what carry wrote, without the belt's bit.
func (b builder) takeOver() []expr.Any {
	return []expr.Any{meta(expr.MetaKeyPRIORITY, r0), mask(r0, b.Marks.ours()), writeMark(r0)}
}

func writePriority(reg uint32) expr.Any {
	return &expr.Meta{Key: expr.MetaKeyPRIORITY, Register: reg, SourceRegister: true}
}

// Devices and kinds of addresses.

func onLo(key expr.MetaKey) []expr.Any {
	return []expr.Any{meta(key, rTmp), eq(rTmp, u32(1))} // lo is link 1 in every network namespace
}

func notLo() []expr.Any {
	return []expr.Any{meta(expr.MetaKeyOIF, rTmp), neq(rTmp, u32(1))}
}

// noNAT matches flows whose destination no table changed (IPS_DST_NAT).
func noNAT() []expr.Any {
	return []expr.Any{ct(expr.CtKeySTATUS, rTmp), mask(rTmp, 1<<5), eq(rTmp, u32(0))}
}

func daddrIs(kind uint32) []expr.Any { return []expr.Any{daddrKind(rTmp), eq(rTmp, u32(kind))} }

func daddrKind(reg uint32) expr.Any {
	return &expr.Fib{Register: reg, FlagDADDR: true, ResultADDRTYPE: true}
}
