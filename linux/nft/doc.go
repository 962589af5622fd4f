// Package nft is minhost's one nftables table, `inet minhost`: what every box may send and receive,
// as data. Wanted verdicts go in, a Ruleset comes out; the Ruleset is written as one netlink batch,
// listed from the kernel again, and compared. A reader of refused packets (NFLOG) is beside it.
//
// It touches its own table, conntrack entries that carry a box's mark, and nothing else. It does not
// know leases, the tree or the belt (linux/belt): it is told cgroup ids and mark bits. It never runs
// the nft program and never reads or writes nft's text.
//
// Beware: base chains are never deleted while the table lives. Deleting and adding them again in one
// batch is atomic for rules, not for packets: tens of thousands passed during such a swap (Linux 6.18).
// A refill flushes the rules and fills the same chains.
//
// Expressions come from github.com/google/nftables/expr. The batches are encoded here, because three
// things of its v0.3.0 are in the way: it asks for an acknowledgement of every message (ENOBUFS from
// about 180 rules on), it cannot read a rule with a socket expression back, and it sends the
// direction of a conntrack expression with four bytes where the kernel wants one (a line in the
// host's kernel log for every such rule).
package nft
