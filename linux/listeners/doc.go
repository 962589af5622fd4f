// Package listeners lists the sockets of this host that wait for peers, with the cgroup that each was
// made in: TCP sockets that listen and UDP sockets that are bound and take datagrams from everybody.
//
// It asks inet_diag (sock_diag(7)), which tells the cgroup since Linux 5.9; on an older kernel no socket
// has one. It sees the network namespace of the thread that opened it and no other. It ends no
// socket (linux/cut does), and reads no /proc: whose process holds a socket it does not say.
package listeners
