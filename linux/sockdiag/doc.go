// Package sockdiag lists and ends the TCP and UDP sockets of a network namespace (sock_diag(7), inet_diag), with
// the cgroup that each was made in. The kernel tells that since Linux 5.9; on an older one no socket has one.
//
// It decides nothing: linux/listeners, linux/cut and the range step say which sockets they mean. It reads no /proc:
// whose process holds a socket it does not say.
package sockdiag
