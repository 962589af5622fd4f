// Package egress holds tests of what a box may reach, with the real program in namespaces of its own:
// live flows under a new policy, rules by box, processes that leave, and each layer of protection alone.
// There is no code here outside tests. The matrix of every way to every destination is linux/nft/nfttest's.
package egress
