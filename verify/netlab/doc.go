// Package netlab runs tests on the real kernel in namespaces of their own: mount, network, pid,
// uts, ipc and cgroup. A test binary that calls Main from TestMain runs itself again inside; there
// it is root, pid 1's child, with empty /run, /var/lib, /etc copied on write, a fresh cgroup2 tree at
// /sys/fs/cgroup whose root is "/", and a network with nothing but lo. When the last process ends
// the kernel takes all of it away.
//
// It is for tests only. It does not build virtual machines and does not boot a service manager.
package netlab
