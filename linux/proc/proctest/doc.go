// Package proctest holds the tests of linux/proc that need root and namespaces. It has no code of its
// own and nothing imports it.
package proctest
