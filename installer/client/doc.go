// Package client calls the helper of minhost from a runner: one connection, one typed method for
// each method of the interface, errors as the types of installer/api.
//
// Rootfs writes what a net plan says about resolver and hosts into the root file system of a box. Beyond that it
// sets nothing up in a box, and it starts no process (package hold does). It imports installer/api
// and the varlink library only, so that a runner in another repository does not drag the host in.
//
// Beware: a plan lives as long as its connection, and so does a box planned with
// end_with_connection. Cancelling the context of a call closes the connection, since the stream
// would be out of step after half a reply: that is also how a runner gives up a Plan that hangs.
package client
