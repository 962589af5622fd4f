// Package lease is the pure half of the helper: leases and their states, the address allocator,
// policies and what they decide, and the durable form of a lease.
//
// It touches no cgroup, no table and no socket, and imports nothing of this module: the helper
// carries out what it decides, and linux/nft turns its Verdicts into a table.
package lease
