// Package egress measures what the table and the belt cost a packet, in namespaces of its own: packets a
// second and processor time a packet of a host process and of boxes, each as a ratio to packets without
// rules in the same run, in slices that take turns. `make bench-egress` prints them.
//
// It tests nothing: no test of the project depends on a time.
package egress
