// Package resolverd is the answerer: an authoritative DNS server for the one small zone
// min.internal, served to this host only.
//
// Zone is the immutable content, Answer the pure and total function from a query's octets to a
// reply's, Run the thin edge around them: sockets, the watched zone file, readiness. A zone change
// swaps one pointer, so each query sees the old zone or the new one.
//
// It forwards nothing, caches nothing, knows no leases and gives no address outside 127.0.0.0/8.
// It never runs as root and writes nothing but replies and its log. It does not watch over who
// may ask what: every program of the host may, and what boxes may reach is the table's matter.
//
// Beware of what looks like an unimportant detail of a negative answer. musl takes an error for
// AAAA as an error of the whole lookup, a caching systemd-resolved takes NXDOMAIN for AAAA as
// NXDOMAIN for A, mDNSResponder (macOS 26) stalls every lookup of the machine for up to a minute
// after a negative answer whose authority section does not begin with an SOA, and Go gives up on
// FORMERR to EDNS.
//
// Answer is the careful path. The fast one beside it (fast.go) takes ordinary queries over UDP and
// gives the same octets, which works because the layout of a reply depends on the query's name but
// not on its letter case: all names that a reply repeats are pointers into the echoed question.
package resolverd
