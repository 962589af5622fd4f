// Package hook keeps programs of ours attached to cgroups, each exactly once: it tells them by the names that
// the kernel shows, attaches beside the programs of others, replaces another version in place, takes copies
// off, and says what is there. They are attached the legacy way: what is attached lives as long as the
// cgroup, without a pin and without a process.
//
// It makes no program and no map, and knows none: linux/belt and linux/localhost do. It has no list of hooks of
// its own, and touches nothing on a hook that has another name.
package hook
