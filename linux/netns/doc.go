// Package netns tells network namespaces apart and works inside them: who is in one, what devices it has, the
// tap of an own-ip box. It holds a namespace by an open descriptor, so that its number (the inode of
// /proc/PID/ns/net) cannot come to mean another one; the kernel reuses the numbers of dead ones at once.
//
// It makes no namespace (the runner does) and moves no process into one. Work inside a namespace is done by
// a short-lived child (linux/errand): no thread of this process ever enters one.
//
// Beware: that a namespace has one user is true for the moment of the look. Whoever has all rights in the user
// namespace that owns it may enter it later, as a runner's own processes may enter each other.
package netns
