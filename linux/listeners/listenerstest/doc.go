// Package listenerstest holds linux/listeners to the real kernel: sockets of processes in cgroups of a
// test's own. It has no code but tests and knows no boxes.
package listenerstest
