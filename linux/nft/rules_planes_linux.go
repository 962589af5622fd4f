package nft

import (
	"net/netip"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// prioritySource is just before other tables' source NAT (100): the first to decide about a flow decides.
const prioritySource = 99

// classify marks flows of a plane that leave this host. Over lo there is nothing to tell: what is between boxes and
// host has the marks of leases.
func (b builder) classify(p Plane) []Rule {
	if p.Mark == 0 {
		return nil
	}
	return []Rule{rule(notLo(), ctDirection(dirOriginal), []expr.Any{ct(expr.CtKeyMARK, r0),
		&expr.Bitwise{SourceRegister: r0, DestRegister: r0, Len: 4, Mask: u32(^p.Mark), Xor: u32(p.Mark)},
		&expr.Ct{Key: expr.CtKeyMARK, Register: r0, SourceRegister: true}})}
}

// sources is the chain that gives flows of planes the addresses of their own; none where no plane has one.
func (b builder) sources() []Chain {
	var rules []Rule
	for _, p := range b.Planes.all() {
		from := func(a netip.Addr, family uint32, is []expr.Any) {
			if a.IsValid() {
				rules = append(rules, rule(is, notLo(), []expr.Any{ct(expr.CtKeyMARK, rTmp), mask(rTmp, p.Mark), neq(rTmp, u32(0)),
					&expr.Immediate{Register: r0, Data: a.AsSlice()},
					&expr.NAT{Type: expr.NATTypeSourceNAT, Family: family, RegAddrMin: r0, RegAddrMax: r0}}))
			}
		}
		from(p.Source4, unix.NFPROTO_IPV4, ipv4())
		from(p.Source6, unix.NFPROTO_IPV6, ipv6())
	}
	if rules == nil {
		return nil
	}
	return []Chain{{Name: "nat_source", Hook: &Hook{"nat", unix.NF_INET_POST_ROUTING, prioritySource}, Rules: rules}}
}

// otherMark loads the conntrack mark without what names planes.
func (b builder) otherMark() []expr.Any {
	load := []expr.Any{ct(expr.CtKeyMARK, rTmp)}
	if planes := b.Planes.Bits(); planes != 0 {
		load = append(load, mask(rTmp, ^planes))
	}
	return load
}
