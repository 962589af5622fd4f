// Package errand does one small thing in a place where this process must not go itself: inside a leaf, as
// another user, in another network namespace. A short-lived child does it (this program again, by
// /proc/self/exe) and hands back descriptors over a socket pair, so that no thread of this process ever is
// somewhere else, not even for a moment.
//
// It knows no errand by itself: the program that runs hands a table of them to Child (linux/netns,
// linux/listen). It gives a child no descriptor, environment and capability but what a Spec names.
//
// Beware: a child that runs as another user, in that user's leaf, is at the user's mercy. What comes back
// from it is looked at before it is used, as anything that a caller sends.
package errand
