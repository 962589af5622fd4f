package nft

import (
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// What a box may send to the answerer: so many packets a second and so many at once. A browser's burst
// is a thousand lookups, a lookup over TCP some six packets; one core of the answerer takes 100,000.
const (
	lookupRate  = 2000
	lookupBurst = 4000
)

// answerer sends what goes to the answerer or its box view to where it is counted.
func (b builder) answerer() []Rule {
	return []Rule{
		rule(ipv4(), []expr.Any{daddr4(r0), loadProto(r0 + 1), dport(r0 + 2), lookup(setAnswerer4, r0)}, goTo("lookups")),
		rule(ipv6(), []expr.Any{daddr6(r0), loadProto(r0 + 4), dport(r0 + 5), lookup(setAnswerer6, r0)}, goTo("lookups")),
	}
}

// lookups lets a leaf ask so often: the answerer has one queue for a view, and a box that filled it would
// keep all others waiting. What is more is refused at once, for a resolver that hears nothing waits for
// seconds; and it is told to nobody, for no rule of the box forbids it.
func (b builder) lookups() []Rule {
	seldom := &expr.Dynset{SrcRegKey: r0, SetName: setLookups, Operation: unix.NFT_DYNSET_OP_UPDATE,
		Exprs: []expr.Any{&expr.Limit{Type: expr.LimitTypePkts, Rate: lookupRate, Unit: expr.LimitTimeSecond, Burst: lookupBurst}}}
	return append([]Rule{rule([]expr.Any{b.leaf(r0), seldom}, goTo("approve"))}, answered()...)
}

// answered refuses a packet so that its sender knows at once.
func answered() []Rule {
	return []Rule{
		rule(proto(protoTCP), []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_TCP_RST}}),
		rule([]expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED}}),
	}
}
