// Package listen makes a socket on the address of a box inside the leaf of the box, and hands it to the
// outside: a listening one (TCP) or a bound one (UDP), of any port.
//
// A socket keeps the cgroup of its creation for ever (FACTS: kernel). So whoever holds one of these has the
// verdict of the box on it, also behind connect(AF_UNSPEC) and connect elsewhere; a socket that this process
// made would be a way out. It is made by a child that is born in the leaf (linux/errand), as the user of the
// box, with the one capability that a port below 1024 needs.
//
// It does not decide who gets a socket (installer/helper does) and moves no process.
package listen
