package nft

import (
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Ruleset is the whole table as data.
type Ruleset struct {
	Sets   []Set
	Chains []Chain
	flags  uint32 // of the table; 0 for whatever it has
}

// strange says whether a table that is there is not owned as it should be.
func (r Ruleset) strange(have listed) bool {
	return have.present && r.flags != 0 && r.flags != have.flags
}

// Chain is one chain with its rules in order. Hook is nil for chains that are only gone to.
type Chain struct {
	Name  string
	Hook  *Hook
	Rules []Rule
}

// Rule is the expressions of one rule.
type Rule []expr.Any

// Hook is where a base chain is called. The policy of all of them is accept: what is not a box's
// passes.
type Hook struct {
	Type     string
	Num      uint32
	Priority int32
}

// Priorities. nat_out runs just before other tables' destination NAT (-100) so that a lookup is
// redirected whatever they do; the two filters run after everything that decides late (300 is where
// connection tracking's helpers run), so that marks set here are not overwritten by other tables.
const (
	priorityNAT    = -101
	priorityFilter = 300
)

// Skeleton describes the table without any box: everything in the boxes cgroup is refused.
func Skeleton(c Config) (Ruleset, error) {
	c, err := c.normal()
	if err != nil {
		return Ruleset{}, err
	}
	return ruleset(c, nil), nil
}

// ruleset describes the table with these elements of boxes.
func ruleset(c Config, boxes []setElement) Ruleset {
	b := builder{c}
	return Ruleset{
		flags: c.flags,
		Sets:  fill(append(emptySets(), b.runnerSets()...), append(fixedElements(c), boxes...)),
		Chains: append([]Chain{
			{Name: "nat_out", Hook: &Hook{"nat", unix.NF_INET_LOCAL_OUT, priorityNAT}, Rules: b.natOut()},
			{Name: "nat_port53", Rules: b.natPort53()},
			{Name: "nat_box", Rules: b.natBox()},
			{Name: "out", Hook: &Hook{"filter", unix.NF_INET_LOCAL_OUT, priorityFilter}, Rules: b.out()},
			{Name: "host_lo", Rules: b.hostLo()},
			{Name: "box_out", Rules: b.boxOut()},
			{Name: "box_uncut", Rules: b.boxUncut()},
			{Name: "box_known", Rules: b.boxKnown()},
			{Name: "box_open", Rules: b.boxOpen()},
			{Name: "box_listed", Rules: b.boxListed()},
			{Name: "allow_origin", Rules: b.allow(b.origin)},
			{Name: "allow_packet", Rules: b.allow(b.packet)},
			{Name: "box_local", Rules: b.boxLocal()},
			{Name: "lookups", Rules: b.lookups()},
			{Name: "approve", Rules: b.approve()},
			{Name: "send_own", Rules: b.sendLocal(setLease)},
			{Name: "send_host", Rules: b.sendLocal(setLeaseHost)},
			{Name: "approve_reply", Rules: b.approveReply()},
			{Name: "tag", Rules: b.tag()},
			{Name: "refuse", Rules: b.refuse()},
			{Name: "in", Hook: &Hook{"filter", unix.NF_INET_LOCAL_IN, priorityFilter}, Rules: b.in()},
			{Name: "from_box", Rules: b.fromBox()},
			{Name: "to_box", Rules: b.toBox()},
			{Name: "note", Rules: b.note()},
			{Name: "note_own", Rules: b.noteOwn()},
			{Name: "ok_new", Rules: b.okNew()},
			{Name: "ok_in", Rules: b.okIn()},
			{Name: "refuse_in", Rules: b.refuseIn()},
			{Name: "refuse_to", Rules: b.refuseTo()},
		}, b.sources()...),
	}
}

// builder makes the rules for one configuration.
type builder struct{ Config }

// rule joins parts to one rule.
func rule(parts ...[]expr.Any) Rule {
	var r Rule
	for _, p := range parts {
		r = append(r, p...)
	}
	return r
}
