package nft

import "github.com/google/nftables/expr"

// Ranges of addresses that boxes get, as a mask and what is behind it.
var (
	leased      = [2][]byte{{255, 255, 255, 0}, {127, 0, 64, 0}}
	unpublished = [2][]byte{{255, 255, 0, 0}, {127, 65, 0, 0}}
)

// notAtHome matches what goes to an address of a range of boxes that is not the receiver's own: a wildcard is
// bound to the addresses of the others too, and so is what listens or sends unbound.
func (b builder) notAtHome(within [2][]byte, then []expr.Any) Rule {
	return b.notOwn(daddr4, within, then)
}

// notOwn matches an address of a range of boxes, at the end of a packet that addr loads, which is not that of the
// socket's leaf.
func (b builder) notOwn(addr func(reg uint32) expr.Any, within [2][]byte, then []expr.Any) Rule {
	return rule(ipv4(), []expr.Any{addr(rTmp),
		&expr.Bitwise{SourceRegister: rTmp, DestRegister: rTmp, Len: 4, Mask: within[0], Xor: u32(0)}, eq(rTmp, within[1]),
		b.leaf(r0), addr(r0 + 2), &expr.Lookup{SetName: setAddress, SourceRegister: r0, Invert: true}}, then)
}

// sendLocal lets a packet go to a local address with the mark of a set, for the receiver's check. It does not come
// from the address of another box: all of 127.0.0.0/8 is local, so that a datagram's control data (IP_PKTINFO) may
// name any of it as the sender, and ping sockets bind without a program that could say no.
func (b builder) sendLocal(set string) []Rule {
	return []Rule{
		b.notOwn(saddr4, leased, goTo("refuse")),
		b.notOwn(saddr4, unpublished, goTo("refuse")),
		rule(b.carry(set), accept()),
	}
}
