// Package selftesttest holds the tests of linux/selftest that need a kernel and root. It has no code of
// its own and nothing imports it.
package selftesttest
