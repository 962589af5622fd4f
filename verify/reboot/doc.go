// Package reboot says whether a host that was rebooted is again what it was, and became so by itself.
//
// Before: Expect makes a Marker of what verify found and of what the steps write; the caller stores
// it. After: Compare puts the marker beside the host of now and adds rows to the report of verify:
// that this is another boot, that what was expected is there, that nobody applied a step by hand.
//
// It is pure and knows no operating system: boot ids, reports, times and the journal's word about
// hands come from the caller. It stores nothing and repairs nothing.
package reboot
