// Package clienttest is a helper for tests of runners: the real interface on a real socket, with
// the lifetimes of leases (a plan lives as long as its connection, a box planned with
// end_with_connection too), and without root, cgroups and table.
//
// It enforces nothing and checks no right: what it says about a box is made up. The varlink
// library speaks the protocol, installer/api checks and decodes each message as the real helper
// does, so that a client cannot get away with a message that the real one would refuse.
package clienttest
