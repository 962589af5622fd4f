package nft

import (
	"slices"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// natOut and natBox send every lookup of a confined box to the box view, whatever server it asks:
// not its own address, and not a server that a rule names with port 53.
//
// The port is asked first: it is the cheapest question that sends nearly everything else away.
func (b builder) natOut() []Rule {
	return []Rule{rule([]expr.Any{dport(rTmp), eq(rTmp, []byte{0, 53})}, goTo("nat_port53"))}
}

func (b builder) natPort53() []Rule {
	return []Rule{
		rule(proto(protoUDP), b.inBoxes(), goTo("nat_box")),
		rule(proto(protoTCP), b.inBoxes(), goTo("nat_box")),
	}
}

func (b builder) natBox() []Rule {
	return []Rule{
		rule(b.kind(policyOpen), accept()),
		rule(b.kind(policyOpenDenies), accept()),
		rule(ipv4(), []expr.Any{b.leaf(r0), daddr4(r0 + 2), lookup(setAddress, r0)}, accept()),
		rule(ipv4(), b.policy(), []expr.Any{daddr4(rPolicy + 1), loadProto(rPolicy + 2), lookup(setDNS4, rPolicy)}, accept()),
		rule(ipv6(), b.policy(), []expr.Any{daddr6(rPolicy + 1), loadProto(rPolicy + 5), lookup(setDNS6, rPolicy)}, accept()),
		b.toBoxView(),
	}
}

func (b builder) toBoxView() Rule {
	return rule(b.known(), []expr.Any{
		&expr.Immediate{Register: r0, Data: []byte{byte(b.BoxView >> 8), byte(b.BoxView)}},
		&expr.Redir{RegisterProtoMin: r0, RegisterProtoMax: r0, Flags: unix.NF_NAT_RANGE_PROTO_SPECIFIED},
	})
}

// out sends boxes away, and counts the others.
func (b builder) out() []Rule {
	return slices.Concat([]Rule{
		rule(b.inBoxes(), goTo("box_out")),
		rule([]expr.Any{&expr.Counter{}}),
	}, b.countRunner(setNodeSent), []Rule{
		rule(onLo(expr.MetaKeyOIF), goTo("host_lo")),
	}, b.classify(b.Planes.Node))
}

// hostLo: a host process that marks its own packets with the bit that means "sent by a box" would be judged as
// one at the receiver: over lo the bit goes.
func (b builder) hostLo() []Rule {
	return []Rule{
		rule(b.carried(), []expr.Any{&expr.Immediate{Register: r0, Data: u32(0)}, writePriority(r0)}),
		rule(markHas(b.Marks.Lease), clearMark(b.Marks.Lease)),
	}
}

// boxOut refuses unknown leaves and processes directly in boxes, on loopback too. Lookup and verdict
// are one rule: a miss must not fall through to a rule that approves.
//
// A reply counts only when the input hook admitted the flow to this very box: "reply direction" alone
// belongs to whoever owns the port now.
//
// A flow to another host that was approved under the policy of now is not judged again: that costs as much
// as all the rest of sending a packet. A new policy has another generation, so older flows are judged
// packet by packet until linux/cut has ended them or found that the new policy admits them. Only where no
// NAT changed the destination: one that leads to this host is judged at the receiver each time.
func (b builder) boxOut() []Rule {
	return []Rule{
		rule(ipv6(), routingHeader(), goTo("refuse")),
		rule(ctDirection(dirReply), []expr.Any{b.leaf(r0)}, b.ctMark(r0+2), []expr.Any{lookup(setSelf, r0)}, b.leave(), accept()),
		rule(ctDirection(dirOriginal), notLo(), noNAT(), []expr.Any{b.leaf(r0)}, b.ctMark(r0+2), []expr.Any{lookup(setJudged, r0)}, b.leave(), accept()),
		rule(b.known(), goTo("box_known")),
		rule(goTo("refuse")),
	}
}

// boxUncut refuses what nobody judges again, for the cut behind an update failed: replies of flows to the box, and over
// lo, where TCP is judged on the SYN. What goes to the box's own address is its own.
func (b builder) boxUncut() []Rule {
	back := verdict(expr.VerdictReturn, "")
	return []Rule{
		rule(ctDirection(dirOriginal), notLo(), back),
		rule(ipv4(), []expr.Any{b.leaf(r0), daddr4(r0 + 2), lookup(setAddress, r0)}, back),
		rule(goTo("refuse")),
	}
}

// boxKnown is the order of DESIGN.md 5.2. Most policies deny no subnet: the kind of the policy says so, and
// the four rules are for the others. So is the first of them: a leaf whose flows could not be ended has the kind of
// one that denies some.
func (b builder) boxKnown() []Rule {
	return []Rule{
		rule(b.tooMany(), goTo("refuse")),
		rule(onLo(expr.MetaKeyOIF), b.kind(policyOpen), goTo("box_open")),
		rule(b.kind(policyOpen), goTo("approve")),
		rule(b.kind(policyListed), goTo("box_listed")),
		rule([]expr.Any{b.leaf(r0)}, b.ctMark(r0+2), []expr.Any{lookup(setUncut, r0)}, jumpTo("box_uncut")),
		// Denied by where it was sent and by where other tables' NAT sends it now.
		rule(ipv4(), b.policy(), []expr.Any{daddr4(rPolicy + 1), lookup(setDeny4, rPolicy)}, goTo("refuse")),
		rule(ipv6(), b.policy(), []expr.Any{daddr6(rPolicy + 1), lookup(setDeny6, rPolicy)}, goTo("refuse")),
		rule(ctDirection(dirOriginal), b.policy(), []expr.Any{ct(unix.NFT_CT_DST_IP, rPolicy+1), lookup(setDeny4, rPolicy)}, goTo("refuse")),
		rule(ctDirection(dirOriginal), b.policy(), []expr.Any{ct(unix.NFT_CT_DST_IP6, rPolicy+1), lookup(setDeny6, rPolicy)}, goTo("refuse")),
		rule(b.kind(policyOpenDenies), goTo("box_open")),
		rule(goTo("box_listed")),
	}
}

// boxOpen is for what an open box sends to this host, and for an open one that is denied some subnets.
func (b builder) boxOpen() []Rule {
	return append(b.answerer(), rule(goTo("approve")))
}

// boxListed refuses what reaches everybody's sockets, and asks the list.
func (b builder) boxListed() []Rule {
	return []Rule{
		rule([]expr.Any{daddrKind(r0), lookup(setShared, r0)}, goTo("refuse")),
		rule(ctDirection(dirOriginal), goTo("allow_origin")),
		rule(goTo("allow_packet")),
	}
}

func routingHeader() []expr.Any {
	return []expr.Any{&expr.Exthdr{DestRegister: rTmp, Type: unix.IPPROTO_ROUTING, Len: 1, Flags: 1, Op: expr.ExthdrOpIpv6}, eq(rTmp, []byte{1})}
}

// tooMany matches a new flow of a leaf that has all that it may have.
func (b builder) tooMany() []expr.Any {
	return append(ctState(expr.CtStateBitNEW), b.leaf(r0), &expr.Dynset{
		SrcRegKey: r0, SetName: setFlows, Operation: unix.NFT_DYNSET_OP_ADD,
		Exprs: []expr.Any{&expr.Connlimit{Count: b.Flows, Flags: expr.NFT_CONNLIMIT_F_INV}}})
}

// destination loads a packet's destination address and port, where the rules of a policy look.
type destination func(v6 bool) (addr func(reg uint32) expr.Any, port func(reg uint32) expr.Any)

// origin is where the flow was sent, before Docker and others changed its destination.
func (b builder) origin(v6 bool) (addr, port func(reg uint32) expr.Any) {
	key := expr.CtKey(unix.NFT_CT_DST_IP)
	if v6 {
		key = unix.NFT_CT_DST_IP6
	}
	return func(reg uint32) expr.Any { return ct(key, reg) },
		func(reg uint32) expr.Any { return ct(expr.CtKeyPROTODST, reg) }
}

// packet is where the packet itself goes: for replies, whose flow was sent to the box, and for
// packets that connection tracking knows nothing about.
func (b builder) packet(v6 bool) (addr, port func(reg uint32) expr.Any) {
	if v6 {
		return daddr6, dport
	}
	return daddr4, dport
}

func (b builder) allow(to destination) []Rule {
	addr4, port4 := to(false)
	addr6, port6 := to(true)
	return []Rule{
		rule(ipv4(), b.policy(), []expr.Any{addr4(rPolicy + 1), loadProto(rPolicy + 2), port4(rPolicy + 3), lookup(setAllow4, rPolicy)}, goTo("approve")),
		rule(ipv6(), b.policy(), []expr.Any{addr6(rPolicy + 1), loadProto(rPolicy + 5), port6(rPolicy + 6), lookup(setAllow6, rPolicy)}, goTo("approve")),
		rule(goTo("box_local")),
	}
}

// boxLocal approves the answerer, whatever the list. It lets another packet to a local address go as far as the receiver, where it is judged: only there
// is it known whose socket listens. Its flow is not tagged before it is admitted: were it not judged
// (somebody emptied the input chain), its replies would be nobody's and refused.
func (b builder) boxLocal() []Rule {
	return append(b.answerer(), []Rule{
		rule(onLo(expr.MetaKeyOIF), daddrIs(addrLocal), goTo("send_own")),
		rule(goTo("refuse")),
	}...)
}

// approve lets a packet go. To a local address it carries the lease and the bit that its rules admit
// a host service, so that a sibling that squats the port is refused. The device is not asked: here
// it is still the one before NAT.
func (b builder) approve() []Rule {
	return []Rule{
		rule([]expr.Any{b.leaf(r0), lookup(setSent, r0)}), // counts
		rule(jumpTo("tag")),
		rule(daddrIs(addrLocal), goTo("send_host")),
		rule(b.leave(), accept()),
	}
}

func (b builder) approveReply() []Rule { return []Rule{rule(b.leave(), accept())} }

// leave sets the belt's bit and takes those that mean something else off: who restores the marks of connections
// (CONNMARK, wg-quick) has put the flow's on the packet, and the belt lets none with the lease bit out by a device.
func (b builder) leave() []expr.Any {
	return putMark(b.Marks.Lease|b.Marks.Host|b.Marks.Belt, b.Marks.Belt)
}

// tag marks flows that a box starts, so that they can be told at the receiver and removed with the
// box. A flow that another table marked is left to it. One that another box had started is this one's now:
// its port was free again before connection tracking forgot who had it, and the answers would be refused.
func (b builder) tag() []Rule {
	started := b.Marks.Lease | b.Marks.Host
	return append([]Rule{
		rule(ctDirection(dirOriginal), b.otherMark(), []expr.Any{eq(rTmp, u32(0))}, b.setCtMark(setCtOut)),
		rule(ctDirection(dirOriginal), []expr.Any{ct(expr.CtKeyMARK, rTmp), mask(rTmp, started), eq(rTmp, u32(started)), b.leaf(r0)},
			b.ctMark(r0+2), []expr.Any{&expr.Lookup{SetName: setOwn, SourceRegister: r0, Invert: true}}, b.setCtMark(setCtOut)),
	}, b.classify(b.Planes.Cohort)...)
}

// refuse names the lease in the mark, tells it once in a while, and answers at once: a blocking TCP
// connect waits a second under an ICMP answer and half a millisecond under a reset (6.1 to 6.18).
//
// While a box's flows are being cut, the reset that tells the peer of a destroyed socket passes, and
// other packets of old flows are dropped without an answer: a reset to the box would close its socket
// without a word to the peer.
func (b builder) refuse() []Rule {
	cutting := []expr.Any{b.leaf(r0), lookup(setCutting, r0)}
	return append([]Rule{
		rule(cutting, tcpFlags(tcpRST, tcpRST, true), ctState(expr.CtStateBitESTABLISHED), goTo("approve_reply")),
		rule(cutting, notPureSYN(), verdict(expr.VerdictDrop, "")),
		rule([]expr.Any{&expr.Immediate{Register: r0, Data: u32(0)}, writeMark(r0)}),
		rule(b.setMark(setCtLease)),
		b.log(prefixOut),
	}, answered()...)
}

// log tells a refusal to NFLOG, with a token bucket for each lease: one noisy box hides no other. What is
// refused and what is told are counted.
func (b builder) log(prefix string) Rule {
	return rule(b.ourMark(r0), []expr.Any{
		&expr.Counter{}, b.bucket(), &expr.Counter{}, b.nflog(prefix)})
}

// bucket lets so many refusals of a lease through.
func (b builder) bucket() expr.Any {
	return &expr.Dynset{SrcRegKey: r0, SetName: setNoise, Operation: unix.NFT_DYNSET_OP_UPDATE,
		Exprs: []expr.Any{&expr.Limit{Type: expr.LimitTypePkts, Rate: 20, Unit: expr.LimitTimeSecond, Burst: 40}}}
}

func (b builder) nflog(prefix string) expr.Any {
	return &expr.Log{Key: 1<<unix.NFTA_LOG_GROUP | 1<<unix.NFTA_LOG_PREFIX | 1<<unix.NFTA_LOG_SNAPLEN,
		Group: b.Group, Snaplen: snapLen, Data: []byte(prefix)}
}
