// Package lasting asks the kernel over netlink connections that stay open: closing one costs 10 to 20 ms where
// the kernel waits for others (nfnetlink, Linux 6.18), and who asks for sockets and flows asks often.
//
// It knows no message and no family. linux/nft has a connection of its own, for batches.
package lasting
