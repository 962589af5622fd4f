// Package nfttest holds the tests of linux/nft that need a kernel and root. It has no code of its own
// and nothing imports it.
package nfttest
