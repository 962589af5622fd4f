// Package reuse lets children of callers die in the middle of a call and gives their numbers to strangers,
// on the real kernel: the helper with its real tree and its real processes, in a pid namespace whose next number
// the test chooses (ns_last_pid). It holds no code that anything imports, and it looks at no packet.
package reuse
