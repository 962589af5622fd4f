// Package rig runs the real program in the namespaces of verify/netlab, for tests that go from one
// end to the other: it builds the program once per test process, runs it as root or as another user,
// installs and takes back, and describes the whole of what minhost may have changed on a host.
//
// It is for tests only. It knows the program by its command line alone: no package of the program is
// called, and nothing is faked.
package rig
