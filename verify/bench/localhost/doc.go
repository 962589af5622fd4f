// Package localhost measures what an own localhost costs: bind and connect of a host process and of a box,
// next to the same in a network namespace, each as a ratio to no programs at all in the same run, in slices
// that take turns. `make bench-localhost` prints them.
//
// It tests nothing: no test of the project depends on a time.
package localhost
