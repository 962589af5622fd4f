// Package cgrouptest holds the tests of linux/cgroup that need a kernel and root. It has no code of
// its own and nothing imports it.
package cgrouptest
