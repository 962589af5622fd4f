// Package belttest holds the tests of linux/belt that need a kernel and root. It has no code of its own
// and nothing imports it.
package belttest
