// Package localhosttest tries linux/localhost on the real kernel, in a lab of its own (verify/netlab), and
// compares it with a real network namespace. It holds tests only; the table is not there, which linux/nft/nfttest
// and verify/e2e/boxes try.
package localhosttest
