// Package client calls the helper of minhost from a runner: one connection, one typed method for
// each method of the interface, errors as the types of installer/api.
//
// It starts no process (package hold does) and sets nothing up in a box. It imports installer/api
// and the varlink library only, so that a runner in another repository does not drag the host in.
//
// Beware: a plan lives as long as its connection, and so does a box planned with
// end_with_connection. Cancelling the context of a call closes the connection, since the stream
// would be out of step after half a reply: that is also how a runner gives up a Plan that hangs.
package client
