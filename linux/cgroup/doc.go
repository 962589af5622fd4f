// Package cgroup is the delegated tree of DESIGN.md 5.1: it finds the cgroup2 mount, makes
// <root>/{holder,boxes}, makes, opens, fills, watches, kills and removes leaves.
//
// A leaf is one directory below boxes, named by its lease id. Everything happens through open
// directory descriptors (openat2 beneath, no links, no other mount), so a leaf that was removed and
// made again under the same name is never taken for the old one: its id is another, and rules know
// ids only (CASES B03).
//
// It does not filter packets (linux/belt, linux/nft), does not limit resources (no controller is
// ever enabled here) and does not decide who may be moved (installer/helper does).
//
// Beware: leaves and boxes stay owned by root. Moving a process needs the right to write
// cgroup.procs of the common ancestor of both ends, which is boxes; so a box process cannot leave its
// leaf, and no unprivileged runner can move one in either: the helper does (CASES B38, B39).
package cgroup
