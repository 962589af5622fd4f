// Package listeners lists the sockets of this host that wait for peers, with the cgroup that each was
// made in: TCP sockets that listen and UDP sockets that are bound and take datagrams from everybody.
//
// It sees the network namespace of the thread that opened it and no other. It ends no socket (linux/cut does).
package listeners
