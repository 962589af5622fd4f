// Package belt is what still holds when the table does not: three small cgroup programs on boxes that
// refuse every packet of a box which no rule has approved (DESIGN.md 5.2). With it a flushed ruleset,
// a table that is not loaded yet or a dead helper mean that boxes reach nothing, while the host is
// untouched.
//
//   - egress: drops packets without the approve bit and takes the bit off the others;
//   - ingress: a socket of a box receives only packets that the table's input hook marked;
//   - setsockopt: no group joins and no SO_REUSEPORT selectors, which act without a packet that a rule
//     could see; and no SO_MARK with a bit of ours.
//
// All three act on sockets of the host's network namespace only: a namespace made inside a box keeps
// its loopback. Before kernel 6.15 packets do not tell theirs: two more programs mark sockets of other
// namespaces, as they are made, and as TCP begins (for the sockets below MPTCP ones, which the kernel makes).
// Its own for neighbour discovery are not marked and count as the host's. The programs are attached the legacy way: they live as long as the cgroup, need no pin
// and no process.
//
// It decides nothing about destinations: linux/nft does, and sets the bits. The belt goes on after the
// table and comes off last.
//
// Beware: two belts at once refuse everything (the first takes the bit that the second asks for).
// That is safe but useless, so a belt is replaced in place, never added to.
package belt
