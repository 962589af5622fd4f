package nft

import (
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// in judges what a box sent over lo first, in both directions and before anything "established":
// an entry belongs to a port, not to the socket that has the port now.
func (b builder) in() []Rule {
	return append([]Rule{
		rule(onLo(expr.MetaKeyIIF), b.carried(), b.takeOver(), goTo("from_box")),
		rule(onLo(expr.MetaKeyIIF), markHas(b.Marks.Lease), goTo("from_box")),
		rule(b.inBoxes(), goTo("to_box")),
		// No rule sees request and TIME_WAIT sockets as a box's. What can't begin a flow may reach
		// them; a pure SYN may not, and the belt drops it there.
		rule(notPureSYN(), orMark(b.Marks.Ingress)),
		// Sockets of other protocols (echo replies, SCTP) are not found at all.
		rule(notProto(protoTCP), notProto(protoUDP), ctDirection(dirReply), orMark(b.Marks.Ingress)),
		rule([]expr.Any{&expr.Counter{}}),
	}, b.countRunner(setNodeMet)...)
}

// fromBox admits a box to itself, to a host service that its rules admit, and to another box when
// both declared it. The handshake's later packets meet a request socket, so TCP is judged on the SYN. What is
// admitted carries the bit for it, to sockets of the host too: linux/localhost's guard asks for it there.
func (b builder) fromBox() []Rule {
	return []Rule{
		rule(b.ended(), goTo("refuse_in")),
		rule(notPureSYN(), goTo("ok_in")),
		rule([]expr.Any{b.leaf(r0)}, b.ourMark(r0+2), []expr.Any{lookup(setSelfMark, r0)}, goTo("note")),
		b.notAtHome(leased, goTo("refuse_in")),
		b.notAtHome(unpublished, goTo("refuse_in")),
		rule(b.inBoxes(), markHas(b.Marks.Host), b.declared(), goTo("note")),
		// The mark has the bit that the sender's rules admit it, so these are declared by both too.
		rule([]expr.Any{b.leaf(r0)}, b.ourMark(r0+2), []expr.Any{lookup(setInBox, r0)}, goTo("note")),
		rule([]expr.Any{b.leaf(r0), lookup(setInBoxes, r0)}, markHas(b.Marks.Host), goTo("note")),
		rule(b.inBoxes(), goTo("refuse_in")),
		// A socket that is in no box: a host service, which the rules admit or not.
		rule(fullSocket(), markHas(b.Marks.Host), goTo("ok_in")),
		rule(fullSocket(), goTo("refuse_in")),
		// A TIME_WAIT socket with the box's own address at both ends: its own earlier connection.
		rule([]expr.Any{&expr.Socket{Key: expr.SocketKeyTransparent, Register: rTmp}, eq(rTmp, []byte{0})}, ipv4(),
			b.ourMark(r0), []expr.Any{saddr4(r0 + 1), daddr4(r0 + 2), lookup(setSelfAddr, r0)}, goTo("note_own")),
		// No socket of a process: an echo request, a closed port, somebody's TIME_WAIT.
		rule(markHas(b.Marks.Host), goTo("ok_in")),
		rule(goTo("refuse_in")),
	}
}

// declared matches ports that the receiving box opened to others than this host.
func (b builder) declared() []expr.Any {
	return []expr.Any{b.leaf(r0), loadProto(r0 + 2), dport(r0 + 3), lookup(setInAny, r0)}
}

// toBox admits to a box what belongs to its own flows, and new ones as its ingress says. Only pure
// SYNs are answered with a reset: a late segment of an allowed peer is INVALID, and a reset to it
// would kill the flow.
func (b builder) toBox() []Rule {
	established := ctState(expr.CtStateBitESTABLISHED)
	return []Rule{
		rule(established, []expr.Any{b.leaf(r0)}, b.ctMark(r0+2), []expr.Any{lookup(setOwn, r0)}, goTo("ok_in")),
		// One to the box from before a policy whose cut failed: nobody is told, for it may go on.
		rule([]expr.Any{b.leaf(r0)}, b.ctMark(r0+2), []expr.Any{lookup(setUncut, r0)}, ctDirection(dirOriginal), verdict(expr.VerdictDrop, "")),
		// A flow of ours that another table had marked first.
		rule(established, ctDirection(dirReply), b.otherMark(), []expr.Any{neq(rTmp, u32(0)),
			mask(rTmp, b.Marks.Lease|b.Marks.Host), eq(rTmp, u32(0))}, goTo("ok_new")),
		rule(b.ended(), goTo("refuse_to")),
		rule(ctState(expr.CtStateBitRELATED), proto(protoICMP), goTo("ok_new")),
		rule(ctState(expr.CtStateBitRELATED), proto(protoICMPv6), goTo("ok_new")),
		// A reply over lo to what nobody admitted. Resets refuse, they may pass.
		rule(b.unasked(), notProto(protoTCP), goTo("refuse_to")),
		rule(b.unasked(), tcpFlags(tcpRST, tcpRST, false), goTo("refuse_to")),
		rule(tcpFlags(tcpSYN|tcpRST|tcpACK, tcpSYN, false), goTo("ok_new")),
		b.notAtHome(leased, goTo("refuse_to")),
		b.notAtHome(unpublished, goTo("refuse_to")),
		rule([]expr.Any{b.leaf(r0), lookup(setInNone, r0)}, goTo("refuse_to")),
		rule(b.declared(), goTo("note")),
		// From this host, and only to a leaf that is known.
		rule(onLo(expr.MetaKeyIIF), b.known(), goTo("note")),
		// Other sockets of the host may have joined the group: no answer, and no bit for the belt.
		rule(daddrIs(addrMulticast), accept()),
		rule(daddrIs(addrBroadcast), accept()),
		rule(goTo("refuse_to")),
	}
}

// note remembers in the conntrack mark which box a flow was admitted to.
func (b builder) note() []Rule {
	return []Rule{
		rule(ctDirection(dirOriginal), b.setCtMark(setCtLease)),
		rule(goTo("ok_new")),
	}
}

// unasked matches replies over lo of flows that have no mark: a box's that was admitted has one.
func (b builder) unasked() []expr.Any {
	parts := append(onLo(expr.MetaKeyIIF), ctDirection(dirReply)...)
	return append(parts, ct(expr.CtKeyMARK, rTmp), eq(rTmp, u32(0)))
}

// noteOwn does the same where no rule sees the receiver: the sender is the box itself, its number is in
// the packet's mark.
func (b builder) noteOwn() []Rule {
	return []Rule{
		rule(ctDirection(dirOriginal), []expr.Any{meta(expr.MetaKeyMARK, r0), mask(r0, b.Marks.Lease|0xffff),
			&expr.Ct{Key: expr.CtKeyMARK, Register: r0, SourceRegister: true}}),
		rule(goTo("ok_new")),
	}
}

// okNew counts what is admitted and found no flow of the box.
func (b builder) okNew() []Rule {
	return []Rule{
		rule([]expr.Any{b.leaf(r0), lookup(setMet, r0)}),
		rule(goTo("ok_in")),
	}
}

func (b builder) okIn() []Rule {
	return []Rule{rule(orMark(b.Marks.Ingress), accept())}
}

func (b builder) refuseIn() []Rule {
	return append([]Rule{b.log(prefixIn)}, b.answer(unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED)...)
}

func (b builder) refuseTo() []Rule { return b.answer(unix.NFT_REJECT_ICMPX_PORT_UNREACH) }

func (b builder) answer(code uint8) []Rule {
	return []Rule{
		rule(proto(protoTCP), []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_TCP_RST}}),
		rule([]expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: code}}),
	}
}
