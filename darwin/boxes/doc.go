// Package boxes is what macOS has in place of a cgroup tree: a box is one attached process, held by pid
// and start time, and its "leaf" is a note about it that a restarted helper reads.
//
// It confines nothing and follows no children: those that outlive the attached process run on, without
// name and lease. A second process cannot be put into a box, since nothing would hold it there. Killing
// a box signals its process group, where the attached process leads one.
package boxes
