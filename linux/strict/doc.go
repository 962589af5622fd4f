// Package strict starts a program where it cannot get others to act for it: in user, mount, pid, ipc
// and cgroup namespaces of its own, without the sockets of the host's services, without new
// privileges, and behind a filter of system calls. It needs no root.
//
// A verdict on a cgroup binds the sockets of its processes. A hostile program of the same account
// goes around it by asking a process outside: the service manager, a message bus, a container
// daemon, a traced neighbour, the kernel's own workers. This package takes the ways to ask away
// (minhost-runner(7) lists them). It makes no network namespace: the verdict is about the host's.
//
// The caller is a process that is in the leaf already and has nothing else to do: Launch starts this
// program again as process 1 of the namespaces (Command, served by Main), which hides, filters and
// starts the target as its child, reaps, passes signals on, and tells how the target does.
//
// It does not confine files: the file system is the host's, whatever the account may read and write
// there the program may. It closes no descriptor that it was given and knows no helper.
//
// Beware: sockets in the file system outside /run that are made after the start are reachable, and
// abstract unix sockets are before Linux 6.12 (Landlock ABI 6). A program that is run by root can
// undo all of it.
package strict
